# SPDX-License-Identifier: Apache-2.0
"""What a bench needs of S3, for the nginx of nginx.py: ListObjectsV2 over a list of keys, and the objects. Nothing is authorised.

    with Nginx(directory, bucket=Bucket("logs", keys_of(directory))) as nginx:
        AWS_ENDPOINT_URL=nginx.slow_url, s3://logs/...

It answers as fast as nginx can, so that what is measured is the loader; that requests are right is for real servers to say.
Reference: ListObjectsV2, https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""
import pathlib
import time

HTTP = """
  init_by_lua_block {{
    keys, rows = {{}}, {{}}
    for line in io.lines("{run}/keys") do
      local key, row = line:match("^([^\\t]*)\\t(.*)$")
      keys[#keys + 1], rows[#rows + 1] = key, row
    end
    local function first_behind(key, equal_too)
      local low, high = 1, #keys + 1
      while low < high do
        local middle = math.floor((low + high) / 2)
        if keys[middle] > key or (equal_too and keys[middle] == key) then high = middle else low = middle + 1 end
      end
      return low
    end
    local function encoded(key)
      return (key:gsub("[^%w%-%._~/]", function(c) return string.format("%%%02X", c:byte()) end))
    end
    function list_objects()
      local args = ngx.req.get_uri_args()
      local prefix, delimiter = args.prefix or "", args.delimiter
      if prefix == true then prefix = "" end
      local most = tonumber(args["max-keys"]) or 1000
      local at = first_behind(prefix, true)
      if args["start-after"] then at = math.max(at, first_behind(args["start-after"], false)) end
      if args["continuation-token"] then
        at = math.max(at, first_behind(ngx.decode_base64(args["continuation-token"]), false))
      end
      local out, count, last = {{}}, 0, nil
      while at <= #keys and count < most and keys[at]:sub(1, #prefix) == prefix do
        local slash = delimiter and keys[at]:find(delimiter, #prefix + 1, true)
        if slash then
          last = keys[at]:sub(1, slash)
          out[#out + 1] = "<CommonPrefixes><Prefix>" .. encoded(last) .. "</Prefix></CommonPrefixes>"
          last = last .. "\\255"
          at = first_behind(last, false)
        else
          local size, date, tag = rows[at]:match("^(%d+)\\t([^\\t]*)\\t(.*)$")
          last = keys[at]
          out[#out + 1] = "<Contents><Key>" .. encoded(last) .. "</Key><LastModified>" .. date .. "</LastModified><ETag>&quot;" ..
            tag .. "&quot;</ETag><Size>" .. size .. "</Size><StorageClass>STANDARD</StorageClass></Contents>"
          at = at + 1
        end
        count = count + 1
      end
      local more = at <= #keys and keys[at]:sub(1, #prefix) == prefix
      ngx.header["Content-Type"] = "application/xml"
      ngx.print('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{name}' ..
        "</Name><Prefix>" .. encoded(prefix) .. "</Prefix><KeyCount>" .. count .. "</KeyCount><MaxKeys>" .. most ..
        "</MaxKeys><EncodingType>url</EncodingType><IsTruncated>" .. tostring(more) .. "</IsTruncated>" ..
        (more and "<NextContinuationToken>" .. ngx.encode_base64(last) .. "</NextContinuationToken>" or "") ..
        table.concat(out) .. "</ListBucketResult>")
    end
  }}
"""

SERVER = """location = /{name} {{ content_by_lua_block {{ list_objects() }} }}
    location = /{name}/ {{ content_by_lua_block {{ list_objects() }} }}
    location /{name}/ {{ alias {root}/; }}"""


def keys_of(directory):
    """(key, size, mtime in seconds) of all files below a directory."""
    directory = pathlib.Path(directory)
    for path in directory.rglob("*"):
        if path.is_file():
            info = path.stat()
            yield str(path.relative_to(directory)), info.st_size, int(info.st_mtime)


class Bucket:
    def __init__(self, name, keys):
        self.name = name
        self.keys = sorted(keys, key=lambda row: row[0].encode())

    def http_part(self, run):
        with open(run / "keys", "w", encoding="utf-8") as out:
            for key, size, mtime in self.keys:
                date = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(mtime))
                out.write(f"{key}\t{size}\t{date}\t{mtime:x}-{size:x}\n")
        return HTTP.format(run=run, name=self.name)

    def server_part(self, root):
        return SERVER.format(name=self.name, root=root)
