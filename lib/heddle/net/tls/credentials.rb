# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # The certificates and keys of a listener.
      #
      # @!attribute pairs [Array<KeyPair>] at least one
      # @!attribute authorities [Array<OpenSSL::X509::Certificate>] the authorities that client certificates are checked
      #   against
      Credentials = Data.define(:pairs, :authorities) do
        # @param text [String] the result of {#dump}
        # @return [Credentials]
        def self.parse(text)
          values = JSON.parse(text)
          pairs = values["pairs"].map do |(key, *certificates)|
            certificate, *chain = certificates.map { |one| OpenSSL::X509::Certificate.new(one) }
            KeyPair.new(certificate:, chain:, key: OpenSSL::PKey.read(key))
          end
          new(pairs:, authorities: values["authorities"].map { |one| OpenSSL::X509::Certificate.new(one) })
        end

        # @return [String] text that {.parse} reads in another process
        def dump
          lists = pairs.map { |pair| [pair.key.private_to_pem, *[pair.certificate, *pair.chain].map(&:to_pem)] }
          JSON.generate(pairs: lists, authorities: authorities.map(&:to_pem))
        end
      end
    end
  end
end
