# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Checks the options that contain paths of requests. The comparison with a request's path is in
      # ext/heddle/http/path_options.c. Included in {Configuration}.
      module PathOptions
        # @return [Boolean, Array<String>] the requests whose bodies the application can read during the upload. true:
        #   all; false: none; an Array: requests to these paths, and to the paths below them
        def streamed
          return stream_bodies.include?("all") unless stream_bodies.any? { |path| path.start_with?("/") }

          stream_bodies.include?("all") || stream_bodies
        end

        private

        def check_paths
          check_paths_of(:stream_bodies, stream_bodies - ["all"], "all, off,")
          check_paths_of(:health_paths, health_paths, "off")
          check_paths_of(:account, account - ["on"], "on, off,")
        end

        def check_paths_of(name, paths, words)
          wrong = paths.find { |path| !path.start_with?("/") } or return

          raise ConfigurationError, "#{name} (#{source(name)}) must be #{words} or paths that begin with /, but is " \
                                    "#{wrong.inspect}"
        end
      end
    end
  end
end
