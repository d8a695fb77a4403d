# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of addresses that speak TLS.
    TLS = [
      Option.new(name: :tls_cert, unit: :list, argument: "FILE", none: "none", default: [], default_words: "none",
                 example: 'tls_cert "site.pem"',
                 text: "certificate files (PEM), one for each site, for tls addresses without their own",
                 reason: "Set it when clients connect by TLS without a proxy in front",
                 details: "Clients choose by the host name that they send; for other names the first one is used. A " \
                          "file contains the certificate, then the intermediate certificates. Changed files are read " \
                          "again within a second; files that can't be used change nothing. Without one, a tls " \
                          "address gets a self-signed certificate in development, and is an error elsewhere."),
      Option.new(name: :tls_key, unit: :list, argument: "FILE", none: "none", default: [],
                 default_words: "in the certificates' files", example: 'tls_key "site.key"',
                 text: "keys of tls_cert, in the same order: RSA, EC or Ed25519, without a passphrase",
                 reason: "Set it when the keys have files of their own")
    ].freeze
  end
end
