# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # Builds the Rack responses of the demo site.
      module Answer
        # The Content-Security-Policy: the browser may load files from this server only.
        POLICY = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; " \
                 "frame-ancestors 'none'"
        private_constant :POLICY

        module_function

        def text(status, body, headers = {}) = whole(status, "text/plain; charset=utf-8", body, headers)

        def html(body)
          whole(200, "text/html; charset=utf-8", body,
                "cache-control" => "no-cache", "content-security-policy" => POLICY, "referrer-policy" => "no-referrer")
        end

        # A response whose body has no known length. The server sends its parts as the body yields them.
        def stream(type, body)
          [200, { "content-type" => type, "cache-control" => "no-store", "x-content-type-options" => "nosniff" }, body]
        end

        def whole(status, type, body, headers = {})
          common = { "content-type" => type, "content-length" => body.bytesize.to_s,
                     "x-content-type-options" => "nosniff" }
          [status, common.merge(headers), [body]]
        end
      end
    end
  end
end
