"""HTTPS: with real certificates, verified, replaced while it runs; made by the openssl command."""

import http.client
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from trellis_command import TrellisTest, trellis
from trellis_http import KEYSPACES, QuietServer, Wire, eventually, in_parallel, seeded_random

OPENSSL = shutil.which("openssl")


class Authority:
    """A root, an intermediate under it, and the certificates that the intermediate signs."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "root.pem"
        self.serial = 1000
        self.certificate("root", None, "basicConstraints=critical,CA:TRUE")
        self.certificate("middle", "root", "basicConstraints=critical,CA:TRUE")

    def openssl(self, *arguments):
        done = subprocess.run([OPENSSL, *map(str, arguments)], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"openssl {arguments}: {done.stderr}")

    def certificate(self, name, signer, extension):
        self.serial += 1
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                     f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out",
                     f"{name}.csr")
        (self.folder / "extension").write_text(extension + "\n")
        by = ("-CA", f"{signer}.pem", "-CAkey", f"{signer}.key") if signer else \
            ("-signkey", f"{name}.key")
        self.openssl("x509", "-req", "-in", f"{name}.csr", *by, "-set_serial", self.serial,
                     "-days", "2", "-extfile", "extension", "-out", f"{name}.pem")
        return self.serial

    def issue(self, name, hosts="IP:127.0.0.1,DNS:localhost"):
        """Files of a certificate with its chain and of its key, and its serial number."""
        serial = self.certificate(name, "middle", f"subjectAltName={hosts}")
        chain = self.folder / f"{name}.chain.pem"
        chain.write_bytes((self.folder / f"{name}.pem").read_bytes()
                          + (self.folder / "middle.pem").read_bytes())
        return chain, self.folder / f"{name}.key", serial


@unittest.skipUnless(OPENSSL, "there is no openssl command here")
class Tls(TrellisTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trellis-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.authority = Authority(pathlib.Path(folder.name))
        cls.issued = {name: cls.authority.issue(name) for name in ("first", "second", "other")}

    def setUp(self):
        super().setUp()
        self.cert, self.key = self.folder / "server.pem", self.folder / "server.key"
        cert, key, self.first = self.issued["first"]
        self.install(cert, key)

    def install(self, cert, key):
        """Each file is replaced as a whole, as certbot does it."""
        for source, target in ((key, self.key), (cert, self.cert)):
            new = target.with_suffix(".new")
            shutil.copyfile(source, new)
            os.rename(new, target)

    def serve(self, *arguments):
        server = QuietServer("--engine", "memory", "--tls-cert", self.cert, "--tls-key", self.key,
                             *arguments).__enter__()
        self.addCleanup(server.__exit__)
        return server

    def context(self, trusted=True):
        context = ssl.create_default_context()
        if trusted:
            context.load_verify_locations(self.authority.root)
        return context

    def connect(self, server, context=None):
        connection = http.client.HTTPSConnection(*server.address, timeout=30,
                                                 context=context or self.context())
        self.addCleanup(connection.close)
        return connection

    def ask(self, connection, method="GET", path="/healthz", body=None, headers=None):
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()

    def serial(self, server):
        """Of the certificate that a new connection is shown."""
        connection = self.connect(server)
        self.assertEqual(self.ask(connection)[0], 200)
        serial = int(connection.sock.getpeercert()["serialNumber"], 16)
        connection.close()
        return serial

    def test_verified(self):
        server = self.serve()
        self.assertRegex(server.url, r"^https://127\.0\.0\.1:\d+$")
        connection = self.connect(server)
        self.assertEqual(self.ask(connection), (200, b'{"status":"ok"}'))
        self.assertIn(connection.sock.version(), ("TLSv1.2", "TLSv1.3"))
        # All on one connection, and more than a TLS record holds.
        self.assertEqual(self.ask(connection, "POST", KEYSPACES, '{"name":"t"}')[0], 200)
        value = seeded_random().randbytes(3_000_000)
        self.assertEqual(self.ask(connection, "PUT", "/k/t/v1/raw/keys/a", value)[0], 204)
        self.assertEqual(self.ask(connection, path="/k/t/v1/raw/keys/a"), (200, value))
        # By a name that is not the certificate's, or of nobody that is trusted: not at all.
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask(self.connect(server, self.context(trusted=False)))
        with socket.create_connection(server.address) as bare:
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.context().wrap_socket(bare, server_hostname="evil.example")
        self.assertEqual(server.stop()[0], 0)

    def test_versions_and_protocols(self):
        server = self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            self.assertEqual(self.ask(self.connect(server, context))[0], 200)
        context = self.context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        connection = self.connect(server, context)
        self.assertEqual(self.ask(connection)[0], 200)
        self.assertEqual(connection.sock.selected_alpn_protocol(), "http/1.1")

    def test_old_versions_are_refused(self):
        context = self.context()
        try:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
        except (ssl.SSLError, ValueError):
            self.skipTest("this Python speaks no old TLS")
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.ask(self.connect(self.serve(), context))

    def test_replaced_files_are_seen(self):
        server = self.serve()
        kept = self.connect(server)
        self.assertEqual(self.ask(kept)[0], 200)
        self.assertEqual(self.serial(server), self.first)
        cert, key, second = self.issued["second"]
        self.install(cert, key)
        eventually(lambda: self.serial(server) == second, "the new certificate is shown")
        # Who was there before keeps what it has.
        self.assertEqual(self.ask(kept)[0], 200)
        self.assertEqual(int(kept.sock.getpeercert()["serialNumber"], 16), self.first)

    def test_broken_files_change_nothing(self):
        server = self.serve()
        cert, key, second = self.issued["second"]
        other = self.issued["other"][1]

        def complaints():
            return len([line for line in server.log if "the old one stays" in line])

        for name, break_it in (
                ("no certificate", lambda: self.cert.write_bytes(b"nonsense\n")),
                ("no file", self.cert.unlink),
                ("another's key", lambda: self.install(cert, other))):
            with self.subTest(name=name):
                before = complaints()
                break_it()
                # It looks when somebody connects.
                eventually(lambda: self.serial(server) == self.first and complaints() > before,
                           "it is told")
                self.assertEqual(self.serial(server), self.first)
        self.install(cert, key)
        eventually(lambda: self.serial(server) == second, "good files are taken again")

    def test_files_it_does_not_start_with(self):
        other = self.issued["other"][1]
        nonsense = self.folder / "nonsense"
        nonsense.write_text("nonsense\n")
        for cert, key, named in ((nonsense, self.key, nonsense), (self.cert, nonsense, nonsense),
                                 (self.cert, other, other), (self.folder / "no", self.key, "no"),
                                 (self.cert, self.folder / "no", "no"), (self.key, self.key, "")):
            with self.subTest(cert=cert, key=key):
                code, out, err = trellis("serve", "--engine", "memory", "--http", "127.0.0.1:0",
                                         "--tls-cert", cert, "--tls-key", key)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(str(named), err)

    def test_plain_http_on_its_port(self):
        server = self.serve()
        for data in (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n\r\n" * 10,
                     b"\x16\x03\x01\xff\xff" + bytes(100), seeded_random().randbytes(1000)):
            with self.subTest(data=data[:20]), Wire(server.address) as wire:
                wire.send(data)
                wire.socket.shutdown(socket.SHUT_WR)
                self.assertNotIn(b"HTTP/", wire.rest())
        with Wire(server.address) as wire:  # without the end of our side: it closes by itself
            wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"HTTP/", wire.rest())
        self.assertEqual(self.serial(server), self.first)

    def test_https_on_a_plain_port(self):
        server = QuietServer("--engine", "memory").__enter__()
        self.addCleanup(server.__exit__)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.ask(self.connect(server))

    def test_many_handshakes_that_do_not_end(self):
        server = self.serve()
        wires = [Wire(server.address) for _ in range(100)]
        for wire in wires[::2]:
            wire.send(b"\x16\x03\x01\x02\x00\x01")
        self.assertEqual(self.serial(server), self.first)
        for wire in wires:
            wire.close()
        statuses = []

        def ask(_):
            connection = http.client.HTTPSConnection(*server.address, context=self.context())
            statuses.append(self.ask(connection, path="/v1/top")[0])
            connection.close()

        in_parallel(16, ask)
        self.assertEqual(statuses, [200] * 16)

    def test_streams_and_tokens(self):
        server = self.serve("--admin-token-file", self.folder / "token")
        token = (self.folder / "token").read_text().strip()
        self.assertEqual(self.ask(self.connect(server), path="/v1/top")[0], 401)
        headers = {"Authorization": f"Bearer {token}"}
        watch = self.connect(server)
        watch.request("GET", "/v1/watch/keyspaces", headers=headers)
        stream = watch.getresponse()
        self.assertEqual(stream.status, 200)
        self.ask(self.connect(server), "POST", KEYSPACES, '{"name":"seen"}', headers)
        while b'"name":"seen"' not in stream.readline():
            pass
        server.process.send_signal(signal.SIGINT)
        stream.read()  # to its proper end
        watch.close()
        self.assertEqual(server.ended()[0], 0)


if __name__ == "__main__":
    unittest.main()
