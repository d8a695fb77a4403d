# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Finds out, from files in the application's folder, which commands start the server, and which code depends on
      # how the server is started.
      class Deployment
        # Files that start a server in production.
        FILES = %w[Dockerfile Procfile bin/docker-entrypoint].freeze
        PUMA = %r{\b(?:bundle exec |bin/)?puma\b(?!_|\.rb)}
        RAILS = %r{\bbin/rails["',\s]+(?:server|s)\b|\brails (?:server|s)\b}
        # Matches a condition in bin/docker-entrypoint, the script that an image runs before its command.
        CONDITION = /\A\s*(?:if|elif|\[)/
        SOURCES = "{app,config,lib}/**/*.rb"
        CONFIGURATION = %r{\Aconfig/(?:puma(?:/.*)?|heddle(?:/.*)?)\.rb\z}
        RAILS_SERVER = /\bRails::Server\b|\bRails\.const_defined\?\(?\s*[:"']Server\b/
        PUMA_CONSTANT = /(?<![\w:])(?:::)?Puma\b/
        private_constant :FILES, :PUMA, :RAILS, :CONDITION, :SOURCES, :CONFIGURATION, :RAILS_SERVER, :PUMA_CONSTANT

        # @param folder [String] the application's folder
        def initialize(folder: Dir.pwd)
          @folder = folder
        end

        # @return [Array<Finding>]
        def findings
          sources = Dir.glob(SOURCES, base: @folder).sort.grep_v(CONFIGURATION)
          [*FILES.filter_map { |name| finding_in(name) { |line, place| starting(line, place) } },
           *sources.filter_map { |name| finding_in(name) { |line, place| asking(line, place) } }]
        end

        private

        # @return [Finding, nil] the first finding that the block returns for a line of the file
        def finding_in(name)
          path = File.join(@folder, name)
          return unless File.file?(path)

          File.foreach(path, encoding: Encoding::UTF_8).with_index(1) do |line, number|
            found = yield(line.scrub.sub(/\A\s*#.*/, ""), "#{name}:#{number}")
            return found if found
          end
          nil
        end

        def starting(line, place)
          return if line.strip == InitCommand::Installation::PREPARES
          return puma(place) if PUMA.match?(line)
          return unless RAILS.match?(line)

          CONDITION.match?(line) ? before_rails_server(place) : rails(place)
        end

        def asking(line, place)
          if RAILS_SERVER.match?(line)
            warning(place, "refers to Rails::Server, which only `rails server` defines",
                    "`heddle serve` does not define it: put code for every server into `server { }` in " \
                    "config/application.rb, and start threads in worker_boot (docs/threads.md)")
          elsif PUMA_CONSTANT.match?(line)
            warning(place, "refers to the constant Puma",
                    "without the gem puma this constant does not exist: use Heddle.stats in place of Puma.stats " \
                    "(docs/observability.md)")
          end
        end

        def before_rails_server(place)
          warning(place, "the condition holds only for `rails server`",
                  "extend it to `heddle serve`, as heddle init --apply does: otherwise nothing prepares the database " \
                  "before the server starts")
        end

        def warning(place, text, advice) = Finding.new(level: :warning, subject: place, text:, advice:)

        def puma(place)
          warning(place, "starts Puma",
                  "run `bundle exec heddle serve` instead, and translate Puma's flags (docs/rails.md)")
        end

        def rails(place)
          Finding.new(level: :note, subject: place, text: "starts `rails server`",
                      advice: "if the Gemfile has no other server, `rails server` starts Heddle, with workers in " \
                              "production; `bundle exec heddle serve` also works with other servers in the Gemfile, " \
                              "and does not load Rails in the master")
        end
      end
    end
  end
end
