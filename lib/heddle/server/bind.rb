# frozen_string_literal: true

module Heddle
  class Server
    # Where to listen, as a person writes it.
    module Bind
      HOST_AND_PORT = %r{\A(?:tcp:(?://)?)?(\[[^\]]+\]|[^:\[\]]*)(?::(\d+))?\z}
      UNIX = %r{\Aunix:(?://)?([^?]+)(?:\?mode=([0-7]{3,4}))?\z}
      private_constant :HOST_AND_PORT, :UNIX

      # @param address [String]
      # @param port [Integer] for addresses that name none
      # @return [TCPBind, UnixBind]
      # @raise [ConfigurationError]
      def self.parse(address, port)
        if (unix = UNIX.match(address))
          return UnixBind.new(unix[1], unix[2]&.to_i(8))
        end

        tcp = HOST_AND_PORT.match(address)
        number = tcp && (tcp[2] ? tcp[2].to_i : port)
        unless number && number <= 65_535 && !address.empty?
          raise ConfigurationError, "--bind must be host:port, [::1]:port or unix:path, but is #{address.inspect}"
        end

        host = tcp[1].empty? ? "0.0.0.0" : tcp[1].delete("[]")
        TCPBind.new(host, number)
      end
    end
  end
end
