# frozen_string_literal: true

module Bench
  module HTTP2
    module Contestants
      # nginx with one worker. A plain port of it with http2 speaks nothing else before 1.25.
      class Nginx < HTTP::Contestants::Nginx
        include HTTP2::Contestant

        EXCLUDED = { "hello-http1" => "its port speaks HTTP/2 alone",
                     "post" => "answers before it has the body" }.freeze
        private_constant :EXCLUDED

        def excludes(row_key) = EXCLUDED[row_key] || super

        private

        def configuration(port, folder)
          text = super.sub("backlog=4096;", "backlog=4096 http2#{" ssl" if tls?};")
          return text unless tls?

          certificate, key = Certificate.write(folder)
          text.sub("root #{folder};", "root #{folder};\n    ssl_certificate #{certificate};\n    " \
                                      "ssl_certificate_key #{key};\n    ssl_session_tickets off;")
        end
      end
    end
  end
end
