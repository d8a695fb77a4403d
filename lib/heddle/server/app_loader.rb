# frozen_string_literal: true

module Heddle
  class Server
    # Loads an application from its `config.ru` with Rack::Builder.
    class AppLoader
      # Maximum number of backtrace lines in the error message when the application can't be loaded.
      LINES = 8
      # Rack, and standard libraries that Puma loads. Some applications use these without requiring them.
      LIBRARIES = %w[open3 tempfile uri rack rack/builder].freeze
      # Backtrace lines that begin like this belong to Heddle.
      OWN = "#{File.expand_path("../..", __dir__)}/heddle".freeze
      private_constant :LINES, :LIBRARIES

      # @param path [String] the path of the file, or of the folder with a `config.ru`
      def initialize(path)
        @path = File.directory?(path) ? File.join(path, "config.ru") : path
      end

      # @return [String] the path of the file, as the user has given it
      attr_reader :path

      # Checks the file without running it.
      # @return [void]
      # @raise [BootError] if it is not a readable file, or has a syntax error
      def check
        check_file
        RubyVM::InstructionSequence.compile_file(File.expand_path(path)) if defined?(RubyVM::InstructionSequence)
      rescue SyntaxError => e
        raise BootError, syntax_error(e)
      end

      # @return [#call] the application
      # @raise [BootError] if the file or the application can't be loaded
      def load
        check_file
        require_libraries
        build
      rescue BootError, SystemExit, SignalException
        raise
      rescue SyntaxError => e
        raise BootError, syntax_error(e)
      rescue Exception => e
        raise BootError, failure(e)
      end

      private

      def check_file
        if !File.exist?(path)
          raise BootError, "there is no file #{path} in #{Dir.pwd}. Run the command in the application's folder, " \
                           "or give the file's path: heddle serve path/to/config.ru"
        elsif !File.file?(path)
          raise BootError, "#{path} is not a file. Give the path of the application's config.ru: " \
                           "heddle serve path/to/config.ru"
        elsif !File.readable?(path)
          raise BootError, "#{path} can't be read by this user: its permissions are " \
                           "#{format("%04o", File.stat(path).mode & 0o7777)}"
        end
      end

      def require_libraries
        LIBRARIES.each { |name| require name }
      rescue LoadError => e
        raise BootError, LoadFailure.new(e).message unless e.path&.start_with?("rack")

        raise BootError, "the gem rack can't be found: run gem install rack, or add it to the application's Gemfile"
      end

      def build
        full = File.expand_path(path)
        options = ::Rack::Builder.method(:parse_file).parameters.any? { |kind, _| kind == :keyrest } ? { isolation: :fiber } : {}
        app, = ::Rack::Builder.parse_file(full, **options)
        return app if app.respond_to?(:call)

        raise BootError, "#{path} runs a #{app.class}, which does not respond to call. Pass a Rack application to `run`"
      end

      def syntax_error(error) = "#{path} can't be loaded because of a syntax error:\n#{indent(error.message)}"

      def failure(error)
        if error.is_a?(RuntimeError) && ErrorText.message(error) == "missing run or map statement"
          return "#{path} calls neither `run` nor `map`. Add `run` with the application to serve"
        end

        lines = app_lines(error)
        message = ErrorText.summary(error, indent: "").delete_suffix(": ")
        "#{path} can't be loaded:\n#{indent([message, *lines].join("\n"))}"
      end

      # Returns the innermost lines of the backtrace, without those of Heddle and Rack::Builder.
      def app_lines(error)
        lines = ErrorText.backtrace(error).reject do |line|
          line.start_with?(OWN) || line.include?("/rack/builder.rb") || line.include?("/exe/heddle")
        end
        lines.first(LINES).map { |line| "  from #{line.delete_prefix("#{Dir.pwd}/")}" }
      end

      def indent(text) = text.lines.map { |line| "  #{line}" }.join
    end
  end
end
