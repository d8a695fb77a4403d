# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    class InitCommand
      # Translates a line that starts an application's server, such as `CMD ["./bin/rails", "server"]` or `web: bundle
      # exec puma`, to a line that starts Heddle.
      module StartCommand
        # Raised if an argument of the command has no equivalent, a flag has no value, or the command names a
        # configuration file that must be translated first.
        class UnknownWordError < OwnError; end

        # Flags of Puma, rackup and `rails server` that have a value, and the corresponding flags of Heddle. A flag with
        # the entry nil is left out, except for some values of -C and -t (see `flag`).
        FLAGS = {
          "-p" => "--port", "--port" => "--port", "-b" => "--bind", "--bind" => "--bind", "--binding" => "--bind",
          "-o" => "--bind", "--host" => "--bind", "-e" => "--environment", "-E" => "--environment",
          "--env" => "--environment", "--environment" => "--environment", "-w" => "--workers",
          "--workers" => "--workers", "-P" => "--pidfile", "--pid" => "--pidfile", "--pidfile" => "--pidfile",
          "-C" => nil, "--config" => nil, "-t" => nil, "--threads" => nil, "-s" => nil, "--server" => nil,
          "-u" => nil, "--using" => nil
        }.freeze
        PROGRAM = %r{\A(?:\./)?(?:bin/)?(?:puma|rackup|rails s(?:erver)?)(?=\s|\z)}
        SHELL = %r{(?<=\A|[\s"'])(?:(?:\./)?(?:bin/)?bundle\ exec\ )?(?<command>(?:\./)?(?:bin/)?
                   (?:puma|rackup|rails\ s(?:erver)?)(?=[\s"']|\z)
                   (?:[^&|;"'\#]|(?<=[\s=])(?:'[^'"\s]*'|"[^'"\s]*"))*(?<!\s))(?=\s*(?:[&|;"'\#]|\z))}x
        EXEC_FORM = /\[[^\[\]]*\]\s*\z/
        # Matches addresses that Heddle's `bind` reads in another way than Puma's.
        PUMAS_URL = %r{\A(?:unix://|(?:tcp|ssl)://[^?]*\?)}
        private_constant :PROGRAM, :SHELL, :EXEC_FORM, :PUMAS_URL

        class << self
          # @param line [String]
          # @param bind [String, nil] the address to listen on if the line has none
          # @return [String, nil] the translated line; nil if the line starts no server
          # @raise [UnknownWordError, PumaTranslation::SkippedError]
          def translate(line, bind: nil)
            list = line[EXEC_FORM]
            return list_form(line, list.rstrip, bind) if list

            line.sub(SHELL) { words(Regexp.last_match[:command].split, bind).join(" ") } if SHELL.match?(line)
          end

          private

          def list_form(line, list, bind)
            given = JSON.parse(list)
            at = given.each_index.find { |index| PROGRAM.match?(given.drop(index).join(" ")) } or return
            before = given.take(at)
            before.pop(2) if before.last(2) == %w[bundle exec]
            line.sub(list) { "[#{[*before, *words(given.drop(at), bind)].map(&:to_json).join(", ")}]" }
          rescue JSON::ParserError
            nil
          end

          def words(given, bind)
            given.shift if given.first.end_with?("rails")
            rest = given.drop(1)
            found = []
            found.concat(take(rest.shift, rest)) until rest.empty?
            found.push("--bind", bind) if bind && !found.include?("--bind")
            ["bundle", "exec", "heddle", "serve", *found]
          end

          def take(word, rest)
            return [word] if word.match?(/\.ru\z|\A\$/)
            return ["--no-access-log"] if %w[-q --quiet].include?(word)

            name, value = word.split("=", 2)
            value ||= rest.shift if FLAGS.key?(name)
            raise UnknownWordError, "Heddle has no equivalent of #{word}" unless FLAGS.key?(name)
            raise UnknownWordError, "#{name} has no value" unless value

            flag(name, value)
          end

          def flag(name, value)
            bare = value.delete(%q('"))
            if %w[-C --config].include?(name) && bare != Installation::PUMA
              raise UnknownWordError, "translate the file first: heddle init --from #{bare}"
            end
            # Code that ran in one thread may not be thread-safe.
            return ["--max-requests", "1"] if %w[-t --threads].include?(name) && bare.match?(/\A(?:\d+:)?1\z/)

            value = value.sub(bare) { PumaAddress.new([]).of_url(bare) } if bare.match?(PUMAS_URL)
            FLAGS[name] ? [FLAGS[name], value] : []
          end
        end
      end
    end
  end
end
