# frozen_string_literal: true

require "heddle/server"
require "fileutils"

module Heddle
  module CLI
    # `heddle init`: writes a configuration file to begin with, or one made of Puma's.
    class InitCommand
      Autoloads.add(self, "heddle/cli/init")

      DEFAULT = "config/heddle.rb"
      FLAGS = %w[--from --require --force --apply --undo --keep-puma --no-keep-puma --help -h].freeze
      HELP = <<~TEXT
        init: write a configuration file

          heddle init [config/heddle.rb] [--from config/puma.rb] [--require FILE] [--force]
          heddle init --apply | --undo

          --from FILE    carry over the settings of Puma's configuration, and list the lines that could not be
          --require FILE load this file first, here and in the new file; may be repeated
          --force        overwrite an existing file; write one even if lines of Puma's file can't be run
          --apply        also change the files that start Puma: Gemfile, Dockerfile, Procfile and others
          --undo         restore those files, and remove or restore the configuration file
          --keep-puma    with --apply: keep Puma for development and tests (default except on Linux; --no-keep-puma)

        Puma's file runs with the current environment variables, without Puma and without the application.
        If it calls code of the application (workers 3 if Shop.large?), require the file that defines it.
      TEXT
      APPLIED = <<~TEXT
        Now: bundle install, bundle exec heddle doctor, and start the server as before.
        config/puma.rb stays: `heddle init --undo` restores every file above, and Puma serves again.
      TEXT
      private_constant :DEFAULT, :FLAGS, :APPLIED

      # @return [String]
      def self.help = HELP

      # @param path [String]
      # @return [String] the same, as a file of this folder says it
      def self.relative(path) = path.delete_prefix("#{Dir.pwd}/")

      # @param arguments [Array<String>] what follows the command's name
      # @param output [IO]
      # @raise [UsageError]
      def initialize(arguments, output)
        @output = output
        @rest = []
        @required = []
        words = arguments.flat_map { |word| word.start_with?("--from=", "--require=") ? word.split("=", 2) : word }
        take(words.shift, words) until words.empty?
        raise UsageError, "init writes one file, but got #{@rest.join(", ")}" if @rest.size > 1
      end

      # @return [Integer] the exit status
      # @raise [UsageError]
      def run
        if @help
          @output.puts(HELP)
          return DONE
        end
        path = @rest.first || DEFAULT
        return undo(path) if @undo

        @apply ? apply(path) : write_configuration(path)
      end

      private

      def apply(path)
        @from ||= Installation::PUMA if File.file?(Installation::PUMA)
        here = File.exist?(path)
        installation = Installation.new(keep_puma: @keep_puma).prepare(configured: here || @from)
        writes = @from && (!here || @force)
        status = writes ? write_configuration(path) : DONE
        @output.puts("#{path} stays as it is.") if here && !writes
        @output.puts("", *installation.apply, APPLIED)
        status
      end

      def undo(path)
        @output.puts(Installation.new.undo(path), "Now: bundle install")
        DONE
      end

      def write_configuration(path)
        @required.each { |file| require_file(file) }
        translation = PumaTranslation.of(PumaFile.new(@from)) if @from
        refuse_incomplete(path, translation.failures) if translation && !@force
        text = add_requires(translation ? translation.text : Template.text)
        write(path, @apply ? MadeFile.mark(text, (File.binread(path) if File.file?(path))) : text)
        @output.puts("#{path} written.", *translation&.report,
                     "`heddle check` prints each option's value and its source.")
        return DONE unless translation&.failures&.any?

        @output.puts("#{path} is incomplete: #{translation.failures.join("; ")}")
        FAILED
      end

      def refuse_incomplete(path, failures)
        return if failures.empty?

        raise UsageError, "#{failures.join("\n")}\n#{path} was not written: it would miss what these lines of Puma's " \
                          "file say. Give the file what it needs (RAILS_ENV=production heddle init …), change the " \
                          "lines, or write what there is with --force."
      end

      def take(word, words)
        case word
        when "--from" then @from = words.shift or raise UsageError, "the flag --from needs a file"
        when "--require" then @required << (words.shift or raise UsageError, "the flag --require needs a file")
        when "--force" then @force = true
        when "--apply" then @apply = true
        when "--undo" then @undo = true
        when "--keep-puma", "--no-keep-puma" then @keep_puma = word == "--keep-puma"
        when "--help", "-h" then @help = true
        when /\A-/
          raise UsageError, "there is no flag #{word}#{Nearest.hint(word, FLAGS)} `heddle help init` lists them."
        else @rest << word
        end
      end

      # It may be any code.
      def require_file(file)
        require File.expand_path(file)
      rescue StandardError, ScriptError => e
        message = e.is_a?(SyntaxError) ? "a syntax error; ruby -c #{file} shows it" : e.message.lines.first.to_s.chomp
        raise UsageError, "#{file} can't be required: #{message}"
      end

      # Conditions of Puma's file stay conditions, and need the same. Ruby reads its magic comment before any code only.
      def add_requires(text)
        lines = @required.map { |file| "require #{required_path(file).dump}\n" }
        lines.empty? ? text : text.sub("\n\n") { "\n\n#{lines.join}\n" }
      end

      # As the file names it: the server starts in this folder.
      def required_path(file)
        path = InitCommand.relative(File.expand_path(file))
        path.start_with?("/") ? path : "./#{path}"
      end

      def write(path, text)
        FileUtils.mkdir_p(File.dirname(path))
        File.open(path, File::WRONLY | File::CREAT | (@force ? File::TRUNC : File::EXCL)) { |file| file.write(text) }
      rescue Errno::EEXIST
        raise UsageError, "#{path} exists. --force overwrites it."
      rescue SystemCallError => e
        raise UsageError, "#{path} can't be written: #{e.message.sub(/ @ .*/, "")}"
      end
    end
  end
end
