# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of addresses that speak TLS.
    TLS = [
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
                 text: "how long a TLS handshake, and the header of the PROXY protocol before it, may take")
    ].freeze
  end
end
