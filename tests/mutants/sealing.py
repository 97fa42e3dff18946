"""Mutants of how ZooKeeper is spoken to, and whom it lets in: TLS, certificates, names and passwords."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

TLS = "tests/runtime/zookeeper/test_tls.py::"
CERTIFICATES = "tests/embedded/test_certificates.py::"
USERS = "tests/embedded/test_zookeeper_users.py::"
CONNECTION = "tests/runtime/zookeeper/test_connection.py::"
ACCESS = "tests/cli/test_zookeeper_access.py::"
FILES = "tests/runtime/zookeeper/test_tls.py::test_files_that_are_no_use_are_named_before_one_dials"
DISK = "tests/embedded/test_zookeeper.py::test_nobody_else_reads_what_is_kept"
SERVERS = CERTIFICATES + "test_servers_of_an_ensemble_trust_another_authority_than_their_clients_do"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(TLS + "test_authorities_of_the_system_are_none_of_ours", "zookeeper-by-any-authority",
             "a ZooKeeper is trusted that an authority of the system has signed", "Tls.context",
             "        context.minimum_version = ssl.TLSVersion.TLSv1_2\n",
             "        context.load_default_certs()\n"),
    _seen_by(TLS + "test_a_server_is_called_as_its_certificate_says", "zookeeper-by-any-name",
             "a server may show the certificate of another one", "Tls.context",
             "        context.minimum_version = ssl.TLSVersion.TLSv1_2\n",
             "        context.check_hostname = False\n"),
    _seen_by(FILES, "exposed-certificate-key", "the key of a certificate may be read by others", "Tls._show",
             "            check_private(key)\n", "            key.stat()\n"),
    _seen_by(FILES, "files-of-tls-unread", "a file that is no use is found out by kazoo's thread alone",
             "_shown_to",
             "        servers.tls.context()  # so that a file that is no use is refused here, and not by kazoo's"
             " thread\n", ""),
    _seen_by(TLS + "test_what_is_unsealed_is_read_though_nothing_more_arrives", "unsealed-bytes-wait",
             "an answer that OpenSSL has unsealed waits until more arrives", "Handler.select",
             "return (unsealed, [], []) if unsealed else ", "return "),
    _seen_by(TLS + "test_why_a_connection_fails_is_logged_once_for_each_reason", "tls-trouble-each-time",
             "why no connection comes about is said at each try", "Handler.create_connection",
             "if self._troubles.get(server) != refusal.message:", "if True:"),
    _seen_by(TLS + "test_a_verb_that_cannot_connect_says_why", "tls-trouble-unsaid",
             "a ZooKeeper that is not trusted is said to be out of reach", "zookeeper.unreached.unreached",
             "    for refusal in _reasons(servers):\n        return refusal\n", ""),
    _seen_by(SERVERS, "clients-among-servers", "a client's certificate is good for the ports among servers",
             "ServerTls.configuration", 'self._stores("quorum.", QUORUM, QUORUM_AUTHORITY)',
             'self._stores("quorum.", QUORUM, AUTHORITY)'),
    _seen_by(SERVERS, "certificate-not-needed", "a server lets in who shows no certificate", "zookeeper_tls",
             "ssl.clientAuth=need\n", "ssl.clientAuth=want\n"),
    _seen_by(CERTIFICATES + "test_a_client_s_certificate_is_none_for_a_server_and_none_among_servers",
             "client-serves", "a client's certificate will do for a server", "embedded.certificates",
             '"serverAuth, clientAuth", "clientAuth"', '"serverAuth, clientAuth", "serverAuth, clientAuth"'),
    _seen_by(DISK, "zookeeper-data-open", "who has the machine reads the keys of clusters on ZooKeeper's disk",
             "zookeeper._make_private", "        directory.chmod(0o700)\n", "        pass\n"),
    _seen_by(DISK, "zookeeper-files-open", "what is copied off ZooKeeper's disk is for all to read",
             "ZooKeeperServer._launch", ", umask=0o077", ""),
    _seen_by(USERS + "test_a_line_that_java_would_read_otherwise_is_refused_by_its_number", "password-for-java",
             "a password is written in which Java finds properties", "zookeeper_users", "!#%-", "!#-"),
    _seen_by(CONNECTION + "test_a_client_that_ends_at_once_again_is_not_replaced_at_once_again",
             "revived-at-once", "a client whose name is not known is replaced as fast as it ends",
             "Connection.revive", "if time.monotonic() < self._revival_s:", "if False:"),
    _seen_by(CONNECTION + "test_a_client_that_ends_at_once_again_is_not_replaced_at_once_again",
             "revived-by-halves", "a client that cannot be made is never tried again", "Connection.revive",
             "            made = clusters.open_client", "            self._is_dead = False\n            made ="
             " clusters.open_client"),
    _seen_by(ACCESS + "test_servers_asked_under_a_name_are_the_same_servers", "owner-unsealed",
             "with the key of a cluster ZooKeeper is asked without TLS", "Servers.owned",
             "return Servers(self, logins, tls=self.tls, sasl=self.sasl)", "return Servers(self, logins)"),
)
