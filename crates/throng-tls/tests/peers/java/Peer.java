// Java's JSSE as the peer: `tests/tls/peers.rs` says what it does.

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public class Peer {
    static void talk(SSLSocket conn) throws IOException {
        boolean clean = true;
        byte[] buffer = new byte[4096];
        try {
            InputStream in = conn.getInputStream();
            OutputStream out = conn.getOutputStream();
            for (int length; (length = in.read(buffer)) > 0; ) {
                out.write(buffer, 0, length);
            }
        } catch (IOException failure) {
            System.out.println("failed: " + failure);
            clean = false;
        }
        // JSSE does not say whether it resumed a session.
        System.out.println(conn.getSession().getProtocol() + " ? " + clean);
        // Otherwise JSSE closes a socket of TLS 1.3 that the peer has closed without close_notify.
        if (!conn.isOutputShutdown()) {
            conn.shutdownOutput();
        }
        conn.close();
    }

    static Certificate certificate(Path file) throws Exception {
        byte[] text = Files.readAllBytes(file);
        return CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(text));
    }

    static PrivateKey key(Path file) throws Exception {
        String text = Files.readString(file).replaceAll("-----[A-Z ]+-----", "");
        byte[] bytes = Base64.getMimeDecoder().decode(text);
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
    }

    static SSLContext context(Path folder) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setCertificateEntry("ca", certificate(folder.resolve("ca.pem")));
        Certificate[] chain = {certificate(folder.resolve("chain.pem"))};
        char[] password = "password".toCharArray();
        store.setKeyEntry("key", key(folder.resolve("key.pem")), password, chain);
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] arguments) throws Exception {
        // A key seals less than one text of the test, so that JSSE starts key updates.
        Security.setProperty("jdk.tls.keyLimits", "AES/GCM/NoPadding KeyUpdate 40000");
        SSLContext context = context(Path.of(arguments[1]));
        InetAddress loopback = InetAddress.getByName("127.0.0.1");
        if (arguments[0].equals("client")) {
            int port = Integer.parseInt(arguments[2]);
            for (int count = 0; count < 2; count++) {
                Socket plain = new Socket(loopback, port);
                var factory = context.getSocketFactory();
                talk((SSLSocket) factory.createSocket(plain, "localhost", port, true));
            }
            return;
        }
        try (var listener = (SSLServerSocket)
                context.getServerSocketFactory().createServerSocket(0, 2, loopback)) {
            System.out.println(listener.getLocalPort());
            for (int count = 0; count < 2; count++) {
                talk((SSLSocket) listener.accept());
            }
        }
    }
}
