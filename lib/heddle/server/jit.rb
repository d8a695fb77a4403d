# frozen_string_literal: true

module Heddle
  class Server
    # Switches YJIT on after the application is loaded, so that it does not compile code that runs only at the start.
    # Rails does the same since 7.2.
    module JIT
      # Values of RUBY_YJIT_ENABLE with which YJIT stays off.
      OFF = %w[0 no false].freeze
      private_constant :OFF

      class << self
        # Does nothing if this Ruby has no YJIT, if YJIT or another just-in-time compiler is on already, if
        # RUBY_YJIT_ENABLE is 0, no or false, or if Rails' config.yjit is false (the default before `load_defaults
        # 7.2`).
        # @param compiler [Module, nil] RubyVM::YJIT; nil: this Ruby has none
        # @param environment [#[]] the environment variables
        # @return [Boolean] whether this call has switched it on
        def enable(compiler: yjit, environment: ENV)
          return false if compiler.nil? || compiler.enabled? || other_compiler?
          return false if OFF.include?(environment["RUBY_YJIT_ENABLE"]) || rails_choice == false

          compiler.enable
          true
        end

        private

        def yjit = (RubyVM::YJIT if defined?(RubyVM::YJIT))

        def other_compiler?
          %i[RJIT ZJIT].any? { |name| RubyVM.const_defined?(name) && RubyVM.const_get(name).enabled? }
        end

        # @return [Boolean, nil] Rails' config.yjit; nil without a Rails application, or before Rails 7.2
        def rails_choice
          application = ::Rails.application if defined?(::Rails.application)
          application.config.yjit if application&.config.respond_to?(:yjit)
        end
      end
    end
  end
end
