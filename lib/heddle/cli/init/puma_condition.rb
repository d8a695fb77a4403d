# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Translates a condition of Puma's file for Heddle's file, which is read before Rails and the application are
      # loaded.
      module PumaCondition
        ENVIRONMENTS = %w[development test production].freeze
        LOCAL = "%w[development test].include?(environment)"
        private_constant :ENVIRONMENTS, :LOCAL

        class << self
          # @param text [String]
          # @return [String, nil] the translated condition; nil if it can't be evaluated in Heddle's file, for example
          #   because it uses Puma, which is not loaded there
          def translate(text)
            return if /\bPuma\b/.match?(text)

            text = text.gsub(/(?:::)?\bRails\.env\.local\?/, LOCAL)
                       .gsub(/(?:::)?\bRails\.env\.(\w+)\?/, '(environment == "\1")')
                       .gsub(/(?:::)?\bRails\.env\b/, "environment")
            text if ENVIRONMENTS.all? { |environment| computable?(text, environment) }
          end

          private

          # Tries the condition: if it raised in Heddle's file, every command of `heddle` would fail.
          def computable?(text, environment)
            file = Server::Configuration::File.new("condition", folder: Dir.pwd, environment:)
            scope = Server::Configuration::Context.new(file).__binding__
            ApplicationGuard.during { scope.eval(text) }
            file.problems.empty?
          rescue SignalException, NoMemoryError
            raise
          rescue Exception
            false
          end
        end
      end
    end
  end
end
