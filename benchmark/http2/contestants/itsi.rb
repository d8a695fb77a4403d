# frozen_string_literal: true

module Bench
  module HTTP2
    module Contestants
      # Itsi in both of its modes.
      class Itsi < HTTP::Contestants::Itsi
        include HTTP2::Contestant

        def command(port, folder, ruby_flags)
          return super unless tls?

          @certificate, @private_key = Certificate.write(folder)
          super
        end

        private

        def configuration(port)
          return super unless tls?

          super.sub("http://127.0.0.1:#{port}",
                    "https://127.0.0.1:#{port}?cert=#{@certificate}&key=#{@private_key}")
        end
      end
    end
  end
end
