# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The text of a configuration file that sets no option, because all its lines are comments.
      module Template
        COMMON = %i[bind port workers mode threads protect stop_timeout access_log body_limit].freeze
        WIDTH = 98
        private_constant :COMMON, :WIDTH

        HEAD = <<~RUBY
          # frozen_string_literal: true

          # The configuration of Heddle, in Ruby. Heddle reads it before the application is loaded, and again at a reload.
          # A flag overrides an environment variable, which overrides this file. `heddle check` prints each
          # option's value and its source. `heddle help serve --all` lists all options; `heddle help port` describes one.
        RUBY

        class << self
          # @return [String]
          def text = [HEAD, *COMMON.map { |name| option(Options::BY_NAME.fetch(name)) }, *hooks].join("\n")

          # @param text [String]
          # @return [String] the text as comment lines
          def comment(text) = text.scan(/\S.{0,#{WIDTH - 1}}(?=\s|\z)/).map { |line| "# #{line}\n" }.join

          private

          def option(option)
            "#{comment("#{option.sentences} Default: #{option.default_text}; " \
                       "#{option.flag}, #{option.variables.join(", ")}.")}# #{option.example}\n"
          end

          def hooks
            Server::Hooks::NAMES.map { |name, text| "#{comment("#{text[0].upcase}#{text[1..]}:")}# #{name} { }\n" }
          end
        end
      end
    end
  end
end
