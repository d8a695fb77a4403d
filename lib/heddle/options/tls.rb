# frozen_string_literal: true

module Heddle
  module Options
    # Options of addresses that speak TLS.
    TLS = [
      Option.new(name: :tls_cert, unit: :list, argument: "FILE", none: "none", default: [], default_words: "none",
                 example: 'tls_cert "site.pem"',
                 text: "certificate files (PEM), one for each site, for tls addresses that don't name a certificate",
                 reason: "Set it when clients connect by TLS without a proxy in front",
                 details: "The host name that the client sends selects the certificate; the first certificate serves " \
                          "all other names. A file contains the certificate, then the intermediate certificates. A " \
                          "changed file is read again within a second; if the new one is invalid, the old " \
                          "certificate stays. Without certificates, a tls address gets a self-signed certificate in " \
                          "development, and is an error elsewhere."),
      Option.new(name: :tls_key, unit: :list, argument: "FILE", none: "none", default: [],
                 default_words: "in the certificates' files", example: 'tls_key "site.key"',
                 text: "private keys (RSA, EC or Ed25519, without a passphrase), in the order of the certificates in " \
                       "tls_cert",
                 reason: "Set it when the keys are in separate files")
    ].freeze
  end
end
