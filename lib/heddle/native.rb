# frozen_string_literal: true

require "heddle/error"
require "heddle/monotonic_clock" # the extension's deadlines are times of this clock
require "rbconfig"

module Heddle
  # Finds and loads the C extension.
  #
  # In a checkout, `bin/compile` puts the build for each Ruby into a separate folder:
  # `lib/heddle/native/<ABI>-<architecture>[+<variant>]/heddle.so`. A precompiled gem contains
  # `heddle/<version>/heddle.so` for each version of Ruby, such as 3.4. For a gem that is not precompiled, RubyGems
  # builds `heddle/heddle.so` at installation.
  #
  # The environment variable HEDDLE_NATIVE selects a variant of the build: `debug` or `sanitize`.
  #
  # @api private
  module Native
    # Raised if there is no build of the extension for this Ruby. The message says what to do.
    class NotBuiltError < LoadError
      include Heddle::Error
    end

    # The error message if the gem contains `not_built.txt`, which extconf.rb writes on a Mac instead of failing.
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
      # @return [String] the path where `bin/compile` puts the build for this Ruby
      def path(variant = ENV.fetch("HEDDLE_NATIVE", nil))
        File.join(__dir__, "native", key(variant), "heddle.#{RbConfig::CONFIG["DLEXT"]}")
      end

      # Loads the extension: the checkout's build for this Ruby if it exists, otherwise the installed gem's.
      # @raise [LoadError] if there is no build, or it does not work with this Ruby
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

      # Called by the extension for errors that only a frame of Ruby code can raise (scheduler/take_errinfo.h).
      #
      # @api private
      def raise_again(error) = raise(error)

      private

      def missing!(built)
        reasons = $LOAD_PATH.map { |folder| File.join(folder.to_s, "heddle/not_built.txt") }
        reason = reasons.find { |file| File.file?(file) }
        raise NotBuiltError, format(NOT_COMPILED, File.read(reason).strip) if reason

        raise NotBuiltError, "Heddle's C extension is not built for Ruby #{RUBY_VERSION} (there is no #{built}): " \
                             "run `bin/compile` with this Ruby in a checkout, " \
                             "or `gem pristine heddle` for an installed gem"
      end
    end
  end
end

Heddle::Native.load
