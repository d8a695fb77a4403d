# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # Where the server listens.
      LISTENING = [
        Option.new(name: :bind, unit: :list, short: "-b", argument: "ADDRESS", default_words: "localhost",
                   example: 'bind "0.0.0.0"',
                   details: "An address that names no port has that of the option `port`, so that PORT counts; name " \
                            "one where several addresses have several ports.",
                   text: "where to listen: host:port, [::1]:port, tls://host:port, unix:path?mode=660 or systemd; " \
                         "may be repeated"),
        Option.new(name: :port, unit: :count, default: 9_292, range: 0..65_535, short: "-p",
                   variables: %w[HEDDLE_PORT PORT], example: "port 3000",
                   text: "the port of addresses that name none; 0 lets the system choose one"),
        Option.new(name: :tls_cert, unit: :list, argument: "FILE", none: "none", default: [], default_words: "none",
                   example: 'tls_cert "site.pem"',
                   details: "One for each site; clients choose by the host that they name, and get the first one " \
                            "where none is for it. A file has the certificate, then those between it and the one " \
                            "that clients know. Changed files are read anew within a second. Without one, a tls " \
                            "address gets a certificate of its own making in development, and is refused otherwise.",
                   text: "certificates of tls addresses that name none themselves: files in PEM"),
        Option.new(name: :tls_key, unit: :list, argument: "FILE", none: "none", default: [],
                   default_words: "in the certificates' files", example: 'tls_key "site.key"',
                   text: "the keys of tls_cert, in the same order: RSA, EC or Ed25519, without a pass phrase"),
        Option.new(name: :tls_min, unit: :word, default: :"1.2", choices: %i[1.2 1.3], example: 'tls_min "1.3"',
                   advanced: true, text: "the least version of TLS"),
        Option.new(name: :tls_verify, unit: :word, default: :none, choices: %i[none optional required],
                   example: "tls_verify :required", advanced: true,
                   details: "optional asks for one, and required ends the handshake of a client that shows none. A " \
                            "certificate that tls_ca has not signed, or that has expired, ends it either way. The " \
                            "application finds the result in the env, see sockets.md.",
                   text: "whether clients of tls addresses show certificates of their own"),
        Option.new(name: :tls_ca, unit: :path, argument: "FILE", default_words: "none", example: 'tls_ca "ca.pem"',
                   advanced: true,
                   text: "the certificates of the authorities that must have signed those of clients, in PEM"),
        Option.new(name: :handshake_timeout, unit: :seconds, default: 10, range: 0.001..86_400, advanced: true,
                   text: "how long a TLS handshake, and the header of the PROXY protocol before it, may take"),
        Option.new(name: :trusted_proxies, unit: :list, argument: "NETWORK", none: "none",
                   default: %w[loopback private unix], example: 'trusted_proxies "loopback", "192.0.2.0/24"',
                   details: "Networks as address/bits, or the words loopback, private, unix (clients of unix " \
                            "sockets) and all. From elsewhere such fields are removed, as Rack and Rails would " \
                            "believe them; see sockets.md.",
                   text: "whose Forwarded, X-Forwarded-* and PROXY protocol are believed"),
        Option.new(name: :early_hints, unit: :word, default: :off, choices: %i[off on always],
                   example: "early_hints :on",
                   details: "A request that carries Via, Forwarded, X-Forwarded-* or X-Real-IP comes through a " \
                            "proxy, which may take a 103 for the response: nginx before 1.29 does. With on such " \
                            "requests get no rack.early_hints, with always they do: the proxy must pass 103 on " \
                            "(HAProxy, Thruster). Hints are collected until the request waits or the loop's tick " \
                            "ends, and sent as one 103; HTTP/1.0 gets none.",
                   text: "whether rack.early_hints sends 103 Early Hints: off, on (to clients that come without a " \
                         "proxy) or always"),
        Option.new(name: :http2, unit: :word, default: :auto, choices: %i[auto tls off], example: "http2 :off",
                   details: "Over TLS, clients choose it by ALPN; on other addresses, a connection that begins with " \
                            "the preface of HTTP/2 speaks it (prior knowledge). Requests over HTTP/2 have no " \
                            "rack.hijack. See http2.md.",
                   text: "where HTTP/2 is spoken: auto (on every address), tls (on tls addresses alone) or off"),
        Option.new(name: :alt_svc, unit: :word, argument: "VALUE", default_words: "none", advanced: true,
                   example: "alt_svc 'h3=\":443\"; ma=86400'",
                   details: "For a proxy beside this server that speaks HTTP/3, see http2.md. A response in which " \
                            "the application has the field keeps the application's; clear makes clients forget.",
                   text: "the field Alt-Svc of responses over https (RFC 7838)"),
        Option.new(name: :reuse_port, unit: :switch, default: false, advanced: true, example: "reuse_port true",
                   text: "whether other processes may listen on the same ports (SO_REUSEPORT)"),
        Option.new(name: :backlog, unit: :count, default: 1_024, range: 1..1_000_000, advanced: true,
                   text: "how many connections the system keeps until they are accepted"),
        Option.new(name: :max_connections, unit: :count, default: 0, range: 0..10_000_000, advanced: true,
                   default_words: "0: by memory and descriptors", example: "max_connections 5_000",
                   details: "With 0 each worker takes as many as fit into its share of the memory (of the container, " \
                            "or of the machine): about 5,300 in 1 GiB with one worker. A connection counts with " \
                            "112 KiB and body_buffer, its maximum before a request runs, and http2_memory counts " \
                            "once for all. Descriptors limit it, too, less 64 for the application. " \
                            "An idle connection uses much less, so a " \
                            "server of many WebSockets may set more. At the limit new connections wait in the " \
                            "system's queue (backlog) until one ends, and a line in the log says so.",
                   text: "how many connections at once, in each worker; 0: as many as memory and descriptors allow"),
        Option.new(name: :descriptor_limit, unit: :word, default: :hard, choices: %i[hard soft], advanced: true,
                   example: "descriptor_limit :soft",
                   details: "A limit on connections follows from it. Programs that the application starts (spawn, " \
                            "system, popen, exec) get the former limit back, except on macOS. The function " \
                            "select(2) of C has no room for descriptors from 1,024 on: a library that passes such a " \
                            "one to FD_SET writes beyond its memory. With one that does (old resolvers, SNMP and " \
                            "LDAP clients) choose soft, and set the soft limit to 1,024 (ulimit -Sn).",
                   text: "whether the limit on open descriptors (RLIMIT_NOFILE) is raised to the hard limit, or " \
                         "stays as it was: soft")
      ].freeze
    end
  end
end
