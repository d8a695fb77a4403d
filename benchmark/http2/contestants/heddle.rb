# frozen_string_literal: true

module Bench
  module HTTP2
    module Contestants
      # Heddle as `heddle serve` runs it.
      class Heddle < HTTP::Contestants::Heddle
        include HTTP2::Contestant

        def command(port, folder, ruby_flags)
          return super unless tls?

          certificate, key = Certificate.write(folder)
          [*super[0..-2], "tls://127.0.0.1:#{port}?cert=#{certificate}&key=#{key}"]
        end
      end
    end
  end
end
