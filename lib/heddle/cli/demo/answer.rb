# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    class Demo
      # Builds the Rack answers of the demo site.
      module Answer
        # The browser may load from this server only: the page proves by this that it asks no other
        # host for anything.
        POLICY = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; " \
                 "frame-ancestors 'none'"
        private_constant :POLICY

        module_function

        # @param status [Integer]
        # @param body [String]
        # @param headers [Hash] added to those of a text
        def text(status, body, headers = {})
          whole(status, "text/plain; charset=utf-8", body, headers)
        end

        # @param value [Object] what JSON can say
        def json(value)
          whole(200, "application/json", "#{JSON.generate(value)}\n", "cache-control" => "no-store")
        end

        # @param body [String]
        def html(body)
          whole(200, "text/html; charset=utf-8", body,
                "cache-control" => "no-cache", "content-security-policy" => POLICY, "referrer-policy" => "no-referrer")
        end

        # A body of unknown length, each piece of which is sent when it is there.
        #
        # @param type [String] the media type
        # @param body [#each]
        def stream(type, body)
          [200, { "content-type" => type, "cache-control" => "no-store", "x-content-type-options" => "nosniff" }, body]
        end

        # @param type [String] the media type
        # @param body [String]
        def whole(status, type, body, headers = {})
          common = { "content-type" => type, "content-length" => body.bytesize.to_s,
                     "x-content-type-options" => "nosniff" }
          [status, common.merge(headers), [body]]
        end
      end
    end
  end
end
