# frozen_string_literal: true

module Bench
  module Realtime
    module Rows
      # The same over TLS: most of it is OpenSSL's.
      class TlsIdle < Idle
        HOLDER = File.expand_path("../tls_holder.rb", __dir__)
        private_constant :HOLDER

        def tls? = true

        private

        def sockets(server, _contestant, count)
          HTTP::Native.converse(RbConfig.ruby, HOLDER, server.port.to_s, @path, count.to_s) do |said, _input|
            opened = said.call
            raise Child::Failed, "#{opened[:opened]} of #{count} sockets were opened" if opened[:opened] < count

            sleep(SETTLING)
            yield
          end
        end
      end
    end
  end
end
