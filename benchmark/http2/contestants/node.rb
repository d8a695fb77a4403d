# frozen_string_literal: true

require "open3"

module Bench
  module HTTP2
    module Contestants
      # Node.js with its own module http2, which is nghttp2: what another language with one thread reaches.
      class Node < HTTP::Contestant
        include HTTP2::Contestant

        PROGRAM = File.expand_path("../node.js", __dir__)

        def key = "node"

        def label = "Node.js"

        def role = :baseline

        def version
          words, status = Open3.capture2("node", "--version")
          raise Unavailable, "Node.js does not run" unless status.success?

          words.strip.delete_prefix("v")
        rescue Errno::ENOENT
          raise Unavailable, "Node.js is not installed"
        end

        def excludes(row_key) = row_key == "hello-http1" ? "its port speaks HTTP/2 alone" : nil

        def command(port, folder, _ruby_flags)
          ["node", PROGRAM, port.to_s, Application::BODY_12K.bytesize.to_s, *(Certificate.write(folder) if tls?)]
        end
      end
    end
  end
end
