# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Options that apply to requests of some paths; ext/heddle/http/path_options.c compares the paths. Included in
      # {Configuration}.
      module PathOptions
        # @return [Boolean, Array<String>] the requests whose body the application reads during the upload: all, none,
        #   or those to these paths and below
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
