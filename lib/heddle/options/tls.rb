# frozen_string_literal: true

module Heddle
  module Options
    # Options of TLS addresses.
    TLS = [
      Option.new(name: :tls_cert, unit: :list, argument: "FILE", none: "none", default: [], default_words: "none",
                 example: 'tls_cert "site.pem"',
                 text: "certificate files (PEM), one for each site; used for tls addresses that don't name a " \
                       "certificate file",
                 reason: "Set it when clients connect by TLS without a proxy in front",
                 details: "The host name that the client sends selects the certificate; the first certificate serves " \
                          "all other names. A file contains the certificate, followed by the intermediate " \
                          "certificates. Heddle reads a changed file within a few seconds; if the new certificate is " \
                          "invalid, it keeps the old one. Without certificates, a tls address gets a self-signed " \
                          "certificate in development, and is an error elsewhere."),
      Option.new(name: :tls_key, unit: :list, argument: "FILE", none: "none", default: [],
                 default_words: "in the certificate files", example: 'tls_key "site.key"',
                 text: "private key files (RSA, EC or Ed25519, without a passphrase), in the same order as the files " \
                       "of tls_cert",
                 reason: "Set it when the keys are in separate files")
    ].freeze
  end
end
