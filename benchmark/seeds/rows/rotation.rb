# frozen_string_literal: true

require "net/http"
require "tempfile"
require "zlib"
require_relative "../static_files"

module Bench
  module Seeds
    module Rows
      # Several addresses in turn, each with the encodings that the client takes.
      class Rotation < HTTP::Rows::Load
        # @param paths [Array<String>]
        # @param encodings [String] the value of Accept-Encoding
        def initialize(paths:, encodings:, **)
          super(path: paths.first, expected: //, **)
          @paths = paths
          @encodings = encodings
        end

        def details = [*super, :body_bytes]

        def around(_quick)
          super do
            Tempfile.create(["rotation", ".lua"]) do |file|
              file.write(script)
              file.close
              @script = file.path
              yield({})
            end
          end
        end

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          sizes = @paths.map { |path| check_encoded(server, path) }
          super.merge(body_bytes: sizes.sum / sizes.size)
        end

        private

        # @return [Integer] the bytes of the body as it is sent
        # @raise [Child::Failed]
        def check_encoded(server, path)
          Net::HTTP.start(HTTP::Server::HOST, server.port, nil, max_retries: 0) do |http|
            sent = http.get(path, "accept-encoding" => @encodings)
            plain = http.get(path, "accept-encoding" => "identity")
            raise Child::Failed, "#{path} was answered #{sent.code}, #{plain.code}" unless
              [sent, plain].all? { |answer| answer.code == "200" }
            raise Child::Failed, "#{path} is not the same when it is compressed" unless
              decoded(sent) == plain.body && !plain["content-encoding"]

            sent.body.bytesize
          end
        end

        def decoded(answer) = answer["content-encoding"] == "gzip" ? Zlib.gunzip(answer.body) : answer.body

        def script
          <<~LUA
            local requests, last = {}, 0
            function init(_)
              for _, path in ipairs({ #{@paths.map(&:dump).join(", ")} }) do
                requests[#requests + 1] = wrk.format("GET", path, { ["Accept-Encoding"] = #{@encodings.dump} })
              end
            end
            function request()
              last = last % #requests + 1
              return requests[last]
            end
          LUA
        end
      end

      # The same with files, which are made for the row.
      class StaticRotation < Rotation
        def around(_quick)
          Dir.mktmpdir("bench-files") do |folder|
            StaticFiles.write(folder)
            super { |extra| yield(extra.merge(places: { Application::FILES => folder })) }
          end
        end
      end
    end
  end
end
