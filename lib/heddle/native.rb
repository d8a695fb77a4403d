# frozen_string_literal: true

require "heddle/error"
require "heddle/monotonic_clock" # the clock of the extension's deadlines
require "rbconfig"

module Heddle
  # Finds and loads the C extension.
  #
  # In a checkout, several Rubies share one tree, so `bin/compile` puts each build into its own folder:
  # `lib/heddle/native/<ABI>-<architecture>[+<variant>]/heddle.so`. A precompiled gem has `heddle/<version>/heddle.so`
  # for each version of Ruby, such as 3.4. For any other installed gem, RubyGems has built `heddle/heddle.so`.
  #
  # The environment variable HEDDLE_NATIVE names a variant that `bin/compile` built: `debug` or
  # `sanitize`.
  #
  # @api private
  module Native
    # Raised when there is no build for this Ruby. The message says what to do.
    class NotBuiltError < LoadError
      include Heddle::Error
    end

    # The file that extconf.rb writes on a Mac instead of failing.
    NOT_COMPILED = "Heddle can't run on this machine: when the gem was installed, its C extension could not be " \
                   "compiled (%s). Fix that and run `gem pristine heddle`. Or serve with Puma here and with Heddle " \
                   "on Linux, as docs/platforms.md shows for Macs"
    private_constant :NOT_COMPILED

    class << self
      # @param variant [String, nil] `nil` for the ordinary build
      # @return [String] the name of a build, such as `3.4.0-x86_64-linux`
      def key(variant = ENV.fetch("HEDDLE_NATIVE", nil))
        abi = "#{RbConfig::CONFIG["ruby_version"]}-#{RbConfig::CONFIG["arch"]}"
        variant.to_s.empty? ? abi : "#{abi}+#{variant}"
      end

      # @param variant [String, nil] `nil` for the ordinary build
      # @return [String] where `bin/compile` puts the build for this Ruby
      def path(variant = ENV.fetch("HEDDLE_NATIVE", nil))
        File.join(__dir__, "native", key(variant), "heddle.#{RbConfig::CONFIG["DLEXT"]}")
      end

      # Loads the extension: the checkout's build for this Ruby, else the installed gem's.
      # @raise [LoadError] if there is neither, or the build does not fit this Ruby
      def load
        built = path
        return require(built) if File.exist?(built)

        missing!(built) if ENV.fetch("HEDDLE_NATIVE", "") != ""
        precompiled = File.join(__dir__, RUBY_VERSION[/\A\d+\.\d+/], "heddle.#{RbConfig::CONFIG["DLEXT"]}")
        return require(precompiled) if File.exist?(precompiled)

        begin
          require "heddle/heddle"
        rescue LoadError => e
          raise unless e.path == "heddle/heddle"

          missing!(built)
        end
      end

      # Called by the extension, which can raise some errors only from a frame of Ruby code (scheduler/take_errinfo.h).
      #
      # @api private
      def raise_again(error) = raise(error)

      private

      def missing!(built)
        reasons = $LOAD_PATH.map { |folder| File.join(folder.to_s, "heddle/not_built.txt") }
        reason = reasons.find { |file| File.file?(file) }
        raise NotBuiltError, format(NOT_COMPILED, File.read(reason).strip) if reason

        raise NotBuiltError, "Heddle's C extension is not built for Ruby #{RUBY_VERSION} (looked for #{built} and " \
                             "heddle/heddle): run `bin/compile` with this Ruby in a checkout, " \
                             "or `gem pristine heddle` for an installed gem"
      end
    end
  end
end

Heddle::Native.load
