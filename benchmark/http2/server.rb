# frozen_string_literal: true

require "open3"

module Bench
  module HTTP2
    # A contestant at work, which is asked over HTTP/2 alone: on a plain port of nginx 1.22 nothing else is spoken.
    class Server < HTTP::Server
      Answer = Data.define(:code, :body)
      PATIENCE = 10 # seconds
      WRITTEN = "\n%{http_version} %{http_code}" # rubocop:disable Style/FormatStringToken -- curl's own
      private_constant :Answer, :WRITTEN

      # @param contestant [Contestant] its way to listen, plain or over TLS, is the server's
      def initialize(contestant, folder, ruby_flags)
        @tls = contestant.tls?
        super
      end

      def url = "#{@tls ? "https" : "http"}://#{HOST}:#{port}"

      # @return [Boolean]
      def tls? = @tls

      private

      def request(path, body)
        posted = body ? ["-H", "content-type: application/octet-stream", "--data-binary", "@-"] : []
        output, status = Open3.capture2("curl", "-sk", @tls ? "--http2" : "--http2-prior-knowledge", "--max-time",
                                        PATIENCE.to_s, "-w", WRITTEN, *posted, "#{url}#{path}",
                                        stdin_data: body.to_s, binmode: true)
        raise IOError, "curl ended with #{status.exitstatus}" unless status.success?

        content, _, words = output.rpartition("\n")
        version, code = words.split
        raise IOError, "answered over HTTP/#{version}" unless version == "2"

        Answer.new(code, content)
      end
    end
  end
end
