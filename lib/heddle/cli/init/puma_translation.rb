# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Translates Puma's configuration file to a configuration file for Heddle, and lists the lines that could not be
      # translated.
      class PumaTranslation
        include PumaValues

        # The translation of a call or another statement.
        #
        # @!attribute call [PumaFile::Call, PumaStatement]
        # @!attribute lines [Array<String>] the lines for the new file
        # @!attribute remarks [Array<String>] differences from Puma, or why the call is not translated
        # @!attribute kind [Symbol] :translated, :needless or :skipped
        Outcome = Data.define(:call, :kind, :lines, :remarks)

        # Gems that work only with Puma, and what replaces them.
        COMPANIONS = { "PumaWorkerKiller" => "worker_memory_limit replaces workers that are too large" }.freeze
        CONFIG = %r{\A\(?\s*(?:(?:Puma::)?DefaultRackup|["'](?:\./)?config\.ru["'])\s*\)?\z}
        private_constant :COMPANIONS, :CONFIG

        # @param file [PumaFile]
        def initialize(file)
          @file = file
          @mentioned = []
          @remarks = []
          settings = file.calls.map { |call| outcome(call) }
          @outcomes = [*settings, *others(settings)].sort_by { |one| one.call.line }
        end

        # @return [String] the new file
        def text = rewriting.text

        # @return [Array<String>] lines for a terminal
        def report = rewriting.report

        # @return [Array<String>] the statements of the file that failed, with their places
        def failures = @file.failures.map { |failure| "#{@file.name}:#{failure.line}: #{failure.message}" }

        private

        # Translates the statements that are not settings. A `require` is copied to the new file only if other code was
        # copied, too, or if its library (dotenv) sets environment variables.
        def others(settings)
          code = settings.any? { |one| one.kind == :translated && (one.call.block || one.call.conditions&.any?) }
          @file.others.map do |one|
            next Outcome.new(one, :skipped, [], [one.reason]) if !one.library || one.failure
            next load_library(one) if one.text.include?("dotenv") || (code && !one.text.include?("_relative"))

            Outcome.new(one, :needless, [], ["no translated line needs it"])
          end
        end

        def load_library(statement)
          conditions = statement.conditions.map { |text| PumaCondition.translate(text) }
          return Outcome.new(statement, :translated, guarded([statement.text], conditions), []) if conditions.all?

          Outcome.new(statement, :skipped, [], ["its condition can't be computed in the new file"])
        end

        def outcome(call)
          @remarks = []
          @expression = nil
          mentioned = @mentioned.dup
          lines = condition(call, translate(call))
          Outcome.new(call, :translated, lines, @remarks)
        rescue NeedlessError => e
          Outcome.new(call, :needless, [], [e.message])
        rescue SkippedError => e
          @mentioned = mentioned
          Outcome.new(call, :skipped, [], [e.message])
        end

        def translate(call)
          name = call.name
          refuse(call, name)
          PumaSettings::HOOKS.key?(name) ? hook(call) : translate_values(call)
        end

        def refuse(call, name)
          raise NeedlessError, PumaSettings::NEEDLESS[name] if PumaSettings::NEEDLESS.key?(name)
          raise NeedlessError, "config.ru is the default" if name == :rackup && CONFIG.match?(call.arguments)

          refuse_untranslated(call, PumaSettings::UNTRANSLATED[name]) if PumaSettings::UNTRANSLATED.key?(name)
          return if call.conditions

          raise SkippedError, "it is inside of a loop, a method or another block: move it to the top level of the file"
        end

        def refuse_untranslated(call, why)
          usual = call.values && call.values.fetch(0, true) == PumaSettings::NEEDLESS_VALUES.fetch(call.name, :none)
          raise usual ? NeedlessError : SkippedError, why
        end

        def hook(call)
          name = PumaSettings::HOOKS.fetch(call.name)
          block = call.block or raise SkippedError, "it has no block"
          refuse_needs(call.needs)
          ["#{name} #{block}"]
        end

        def refuse_needs(names)
          pumas = names.grep(/\bPuma/)
          if pumas.any?
            instead = COMPANIONS.values_at(*pumas).compact.map { |text| "; #{text}" }.join
            raise SkippedError, "its block uses #{pumas.join(", ")}, which works only with Puma#{instead}"
          end
          return if names.empty?

          raise SkippedError, "its block uses #{names.join(", ")}, which only Puma's file defines"
        end

        def condition(call, lines)
          conditions = call.conditions.map { |text| PumaCondition.translate(text) }
          raise SkippedError, unset(call) if conditions.all? && !call.reached && call.unset.any?
          return guarded(lines, conditions) if conditions.all?
          unless call.reached
            raise SkippedError, "its condition can't be translated, and was false when `heddle init` ran"
          end

          @remarks << "Its condition can't be translated, and is left out; it was true when `heddle init` ran."
          guarded(lines, conditions.compact)
        end

        def guarded(lines, conditions)
          return lines if conditions.empty?

          test = conditions.one? ? conditions.first : conditions.map { |text| "(#{text})" }.join(" && ")
          return ["#{lines.first} if #{test}"] if lines.one? && !lines.first.include?("\n")

          ["if #{test}", *lines.flat_map { |line| line.lines(chomp: true) }.map { |line| "  #{line}" }, "end"]
        end

        def rewriting = PumaRewriting.new(@file, failures, @outcomes, @mentioned)
      end
    end
  end
end
