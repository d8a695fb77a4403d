# frozen_string_literal: true

require "yaml"

module Heddle
  module CLI
    class InitCommand
      # The settings of Puma (versions 5 to 8), each with its equivalent in Heddle, from `puma_settings.yml`.
      module PumaSettings
        TABLE = YAML.load_file("#{__dir__}/puma_settings.yml", symbolize_names: true)
        private_constant :TABLE

        # @param group [Symbol] a section of the table
        # @return [Hash{Symbol => String}]
        def self.group(group) = TABLE.fetch(group).freeze
        private_class_method :group

        # The host on which Puma 8 listens by default: every IPv6 and IPv4 address.
        HOST = "[::]"
        # A remark in the new file: under `rails server`, Puma has another default.
        RAILS = "Under `rails server` the default is localhost in development, as with Puma."
        RAILS_HOST = %(defined?(::Rails::Server) && environment == "development" ? "localhost" : #{HOST.inspect}).freeze
        private_constant :RAILS_HOST

        # @return [String] the line of Heddle's file that sets Puma's default address. The current folder must be the
        #   application's
        def self.listen = rails? ? "bind(#{RAILS_HOST})" : "bind #{HOST.inspect}"

        # @return [Boolean]
        def self.rails? = File.exist?("bin/rails")

        # Settings of Puma, each with the option of Heddle that gets the same value.
        OPTIONS = group(:options).transform_values(&:to_sym).freeze

        # Hooks of Puma, each with the hook of Heddle that runs at the same step.
        HOOKS = group(:hooks).transform_values(&:to_sym).freeze

        # Settings that {PumaTranslation} translates with a method for each, and their descriptions in
        # docs/from_puma.md.
        TRANSLATED = group(:translated)

        # Plugins that need no equivalent, each with the reason.
        PLUGINS = group(:plugins).transform_keys(&:to_s).freeze

        # Settings that Heddle does not need, each with the reason.
        NEEDLESS = group(:needless)

        # For some settings of {UNTRANSLATED}, the value with which they need no equivalent.
        NEEDLESS_VALUES = group(:needless_values)

        # Settings without an equivalent, each with the reason.
        UNTRANSLATED = group(:without_equal)

        NAMES = [*[OPTIONS, HOOKS, TRANSLATED, NEEDLESS, UNTRANSLATED].flat_map(&:keys), :plugin].freeze
      end
    end
  end
end
