# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Options that count for the requests of some paths and below; ext/heddle/http/path_options.c compares the paths.
      # Included in {Configuration}.
      module PathOptions
        # @return [Boolean, Array<String>] the requests whose application reads the body as it comes: all, none, or
        #   those of these paths and below
        def streamed
          return stream_bodies.include?("all") unless stream_bodies.any? { |path| path.start_with?("/") }

          stream_bodies.include?("all") || stream_bodies
        end

        private

        def check_paths
          wrong = stream_bodies.find { |path| path != "all" && !path.start_with?("/") } or return

          raise ConfigurationError, "stream_bodies (#{source(:stream_bodies)}) must be all, off, or paths that begin " \
                                    "with /, but is #{wrong.inspect}"
        end
      end
    end
  end
end
