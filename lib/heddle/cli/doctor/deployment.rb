# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Reads in the application's folder how the application is started, and which proxy stands before it.
      class Deployment
        # Files that start a server in production.
        FILES = %w[Dockerfile Procfile bin/docker-entrypoint].freeze
        PUMA = %r{\b(?:bundle exec |bin/)?puma\b(?!_|\.rb)}
        RAILS = %r{\bbin/rails["',\s]+(?:server|s)\b|\brails (?:server|s)\b}
        private_constant :FILES, :PUMA, :RAILS

        # @param configuration [Server::Configuration]
        # @param folder [String] the application's
        def initialize(configuration, folder: Dir.pwd)
          @configuration = configuration
          @folder = folder
        end

        # @return [Array<Finding>]
        def findings = [*FILES.filter_map { |name| start(name) }, proxy]

        private

        def start(name)
          path = File.join(@folder, name)
          return unless File.file?(path)

          File.foreach(path, encoding: Encoding::UTF_8).with_index(1) do |line, number|
            line = line.scrub.sub(/\A\s*#.*/, "")
            return puma("#{name}:#{number}") if PUMA.match?(line)
            return rails("#{name}:#{number}") if RAILS.match?(line)
          end
          nil
        end

        def puma(place)
          Finding.new(level: :warning, subject: place, text: "starts Puma",
                      advice: "bundle exec heddle serve, and its flags for Puma's: docs/rails.md lists such files")
        end

        def rails(place)
          Finding.new(level: :note, subject: place, text: "starts `rails server`",
                      advice: "with Heddle alone in the Gemfile it starts workers in production; `bundle exec heddle " \
                              "serve` does so without loading Rails first, and beside other servers in the Gemfile")
        end

        def proxy
          case @configuration.early_hints
          when :off
            Finding.new(level: :ok, subject: "proxy", text: "early_hints is off: any proxy may stand in front")
          when :on
            Finding.new(level: :note, subject: "proxy", text: "early_hints is on: clients without a proxy get 103",
                        advice: "a proxy must say Via, Forwarded or X-Forwarded-*, or it gets 103, which nginx " \
                                "before 1.29 takes for the response")
          else
            Finding.new(level: :warning, subject: "proxy", text: "early_hints is always: 103 is sent through proxies",
                        advice: "behind nginx before 1.29 pages hang: early_hints :on, or a proxy that passes 103 on " \
                                "(HAProxy, Thruster)")
          end
        end
      end
    end
  end
end
