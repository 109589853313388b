// SPDX-License-Identifier: Apache-2.0
// A NameNode and a DataNode in one process: MiniHdfs PORT DIRECTORY READY-FILE. Ports: PORT is the NameNode's WebHDFS, the next two
// are the DataNode's and the RPC's. Blocks of 1 MiB, so that ranges cross them; lists in pages of five. /user/reader is reader's alone.
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Configuration configuration = new Configuration();
        configuration.setInt("dfs.blocksize", 1 << 20);
        configuration.setInt("dfs.namenode.fs-limits.min-block-size", 1 << 16);
        configuration.setInt("dfs.ls.limit", 5);
        configuration.set("dfs.datanode.http.address", "127.0.0.1:" + (port + 1));
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(configuration, new File(arguments[1]))
            .numDataNodes(1).storagesPerDatanode(1).nameNodeHttpPort(port).nameNodePort(port + 2)
            .checkDataNodeAddrConfig(true).format(true).build();
        cluster.waitClusterUp();
        FileSystem files = cluster.getFileSystem();
        Path home = new Path("/user/reader");
        files.mkdirs(home);
        files.setPermission(home, new FsPermission((short) 0700));
        files.setOwner(home, "reader", "reader");
        Files.write(Paths.get(arguments[2]), new byte[0]);
        Thread.currentThread().join();
    }
}
