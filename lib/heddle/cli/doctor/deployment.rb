# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Finds out from files in the application's folder how the application is started.
      class Deployment
        # Files that start a server in production.
        FILES = %w[Dockerfile Procfile bin/docker-entrypoint].freeze
        PUMA = %r{\b(?:bundle exec |bin/)?puma\b(?!_|\.rb)}
        RAILS = %r{\bbin/rails["',\s]+(?:server|s)\b|\brails (?:server|s)\b}
        private_constant :FILES, :PUMA, :RAILS

        # @param folder [String] the application's
        def initialize(folder: Dir.pwd)
          @folder = folder
        end

        # @return [Array<Finding>]
        def findings = FILES.filter_map { |name| finding_in(name) }

        private

        def finding_in(name)
          path = File.join(@folder, name)
          return unless File.file?(path)

          File.foreach(path, encoding: Encoding::UTF_8).with_index(1) do |line, number|
            line = line.scrub.sub(/\A\s*#.*/, "")
            next if line.strip == InitCommand::Installation::PREPARES

            return puma("#{name}:#{number}") if PUMA.match?(line)
            return rails("#{name}:#{number}") if RAILS.match?(line)
          end
          nil
        end

        def puma(place)
          Finding.new(level: :warning, subject: place, text: "starts Puma",
                      advice: "run `bundle exec heddle serve` instead, and translate Puma's flags (docs/rails.md)")
        end

        def rails(place)
          Finding.new(level: :note, subject: place, text: "starts `rails server`",
                      advice: "if the Gemfile has no other server, this starts Heddle with workers in production; " \
                              "`bundle exec heddle serve` does not load Rails first, and works beside other servers " \
                              "in the Gemfile")
        end
      end
    end
  end
end
