# frozen_string_literal: true

require "yaml"

module Heddle
  module CLI
    class InitCommand
      # The settings of Puma's configuration (versions 5 to 8), each with Heddle's counterpart. The table is data:
      # `puma_settings.yml`.
      module PumaSettings
        TABLE = YAML.load_file("#{__dir__}/puma_settings.yml", symbolize_names: true)
        private_constant :TABLE

        # @param group [Symbol] of the table
        # @return [Hash{Symbol => String}]
        def self.group(group) = TABLE.fetch(group).freeze
        private_class_method :group

        # Where Puma 8 listens by default: every address of IPv6 and IPv4.
        HOST = "[::]"
        # A remark for the new file, because `rails server` gives Puma another default.
        RAILS = "Under `rails server` this is localhost in development, as with Puma."
        RAILS_HOST = %(defined?(::Rails::Server) && environment == "development" ? "localhost" : #{HOST.inspect}).freeze
        private_constant :RAILS_HOST

        # @return [String] the line of Heddle's file that listens on Puma's default address; called in the application's
        #   folder
        def self.listen = rails? ? "bind(#{RAILS_HOST})" : "bind #{HOST.inspect}"

        # @return [Boolean]
        def self.rails? = File.exist?("bin/rails")

        # An option of Heddle that means the same; the value is the same, too.
        OPTIONS = group(:options).transform_values(&:to_sym).freeze

        # A hook of Heddle that runs at the same step.
        HOOKS = group(:hooks).transform_values(&:to_sym).freeze

        # Settings that need code, each with its row on the page: {PumaTranslation} has a method for each.
        TRANSLATED = group(:translated)

        # Plugins that need no counterpart, each with the reason.
        PLUGINS = group(:plugins).transform_keys(&:to_s).freeze

        # Settings that Heddle does not need, each with the reason.
        NEEDLESS = group(:needless)

        # Settings without a counterpart, each with the reason.
        UNTRANSLATED = group(:without_equal)

        NAMES = [*[OPTIONS, HOOKS, TRANSLATED, NEEDLESS, UNTRANSLATED].flat_map(&:keys), :plugin].freeze
      end
    end
  end
end
