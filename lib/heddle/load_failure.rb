# frozen_string_literal: true

require "heddle/printable_text"

module Heddle
  # Builds the message about a library that can't be loaded, for example because its gem is missing, or because its
  # extension was built for another Ruby.
  #
  # @api private
  class LoadFailure
    # Matches the end of Ruby's message about an extension that can't be loaded.
    EXTENSION = %r{ - (?<file>/.*\.(?:so|bundle|dylib))\z}
    # Matches the folder of a gem, or of its extensions.
    GEM = %r{/(?:gems|extensions/[^/]+/[^/]+)/(?<name>[^/]+)-\d[^/-]*(?:-[^/]+)?/}
    # Matches frames of `require` itself, in Ruby and in the libraries that replace it.
    REQUIRE = %r{\A<internal:|/bundled_gems\.rb:|/lib/(?:ruby/[^/]+/(?:rubygems|bundler)|bundler|bootsnap|zeitwerk)/}
    private_constant :EXTENSION, :GEM, :REQUIRE

    # @param error [LoadError]
    def initialize(error)
      @error = error
      @text = PrintableText.utf8(error.message)
    end

    # @return [String] which file can't be loaded, why, where it was required, and what to do
    def message
      return @text if defined?(Native::NotBuiltError) && @error.is_a?(Native::NotBuiltError)

      "#{PrintableText.lines(@text)}#{" (required at #{place})" if place}\n#{advice}"
    end

    private

    def place
      line = @error.backtrace&.map(&:scrub)&.find { |frame| !REQUIRE.match?(frame) }
      line && line[/\A.*?:\d+/].delete_prefix("#{Dir.pwd}/")
    end

    def advice
      file = @text[EXTENSION, :file]
      return advice_for_extension(file) if file

      "Ruby #{RUBY_VERSION} can't find this file. Install the gem that contains the " \
        "file#{", and add the gem to the Gemfile" if bundler?}"
    end

    def advice_for_extension(file)
      name = file[GEM, :name]
      unless name
        return "This extension does not work with Ruby #{RUBY_VERSION}, or a library that it needs is missing. " \
               "Reinstall Ruby, or the gem that contains this extension"
      end

      "The extension of the gem #{name} does not work with Ruby #{RUBY_VERSION}, or a library that it needs is " \
        "missing. Build it again: #{bundler? ? "bundle" : "gem"} pristine #{name}"
    end

    def bundler? = defined?(::Bundler::ORIGINAL_ENV) ? true : false
  end
end
