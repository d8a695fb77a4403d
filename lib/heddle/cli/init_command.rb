# frozen_string_literal: true

require "fileutils"

module Heddle
  module CLI
    # `heddle init`: writes a first configuration file, or translates Puma's. With --apply, it also changes the files
    # that start Puma; --undo restores these files.
    class InitCommand < Command
      Autoloads.add(self, "heddle/cli/init")

      NAME = "init"
      DEFAULT = "config/heddle.rb"
      NOTES = <<~TEXT

        Heddle evaluates the file of --from with the current environment variables, without loading Puma or the
        application.
      TEXT
      APPLIED = <<~TEXT
        Now run `bundle install` and `bundle exec heddle doctor`, and start the server as before.
        `heddle init --undo` restores all files listed above, so that Puma serves again.
      TEXT
      private_constant :DEFAULT, :NOTES, :APPLIED

      # @param path [String]
      # @return [String] the same path, relative to this folder
      def self.relative(path) = path.delete_prefix("#{Dir.pwd}/")

      # @see Command#parser
      def parser = super.tap { |options| options.separator(NOTES) }

      private

      def declare(options)
        options.banner = "heddle init [config/heddle.rb]: #{COMMANDS.fetch(NAME).text}"
        options.on("--from FILE", "translate Puma's configuration, and list the lines that could not be " \
                                  "translated") { |file| @from = file }
        options.on("--force", "overwrite an existing configuration file; with --from, write the file even " \
                              "if lines of Puma's file raise errors") { @force = true }
        options.on("--apply", "also change the files that start Puma: Gemfile, Dockerfile, Procfile and others") do
          @apply = true
        end
        options.on("--undo", "restore the files that --apply changed, and remove or restore the configuration " \
                             "file") { @undo = true }
        options.on("--keep-puma", "with --apply: keep Puma for development and tests (default except on " \
                                  "Linux)") { @keep_puma = true }
        options.on("--no-keep-puma", "with --apply: remove Puma everywhere (default on Linux)") { @keep_puma = false }
      end

      def accept(rest) = accept_file(rest, "writes")

      def act
        path = @file || DEFAULT
        return undo(path) if @undo

        @apply ? apply(path) : write_configuration(path)
      end

      def apply(path)
        @from ||= Installation::PUMA if File.file?(Installation::PUMA)
        here = File.exist?(path)
        writes = @from && (!here || @force)
        installation = Installation.new(keep_puma: @keep_puma).prepare(bound: writes || (here && binds?(path)))
        status = writes ? write_configuration(path) : DONE
        translation = "; --force replaces it by a translation of #{@from}" if @from
        @output.puts("#{path} was not changed#{translation}.") if here && !writes
        @output.puts("", *installation.apply, *files_of_environments, *(APPLIED if writes || installation.changed?))
        status
      end

      # @return [Boolean] whether the configuration file sets an address to listen on
      def binds?(path)
        nodes = SyntaxTree.nodes(SyntaxTree.parse(path, File.read(path)).value)
        nodes.grep(Prism::CallNode).any? { |call| call.name == :bind }
      end

      # The notices about configuration files of single environments, which Puma reads in place of config/puma.rb.
      def files_of_environments
        Dir["config/puma/*.rb"].map do |path|
          new = path.sub("puma", "heddle")
          "#{path} was not translated, because Heddle reads one file in all environments. `heddle init #{new} --from " \
            "#{path}` translates it; with HEDDLE_CONFIG=#{new} the server reads the new file.\n"
        end
      end

      def undo(path)
        @output.puts(Installation.new.undo(path), "Now run `bundle install`.")
        DONE
      end

      def write_configuration(path)
        translation = PumaTranslation.new(PumaFile.new(@from)) if @from
        refuse_incomplete(path, translation.failures) if translation && !@force
        text = translation ? translation.text : Template.text
        write(path, @apply ? MadeFile.mark(text, (File.binread(path) if File.file?(path))) : text)
        @output.puts("#{path} written.", *translation&.report,
                     "`heddle check` prints each option's value and its source.")
        return DONE unless translation&.failures&.any?

        @output.puts("#{path} is incomplete: #{translation.failures.join("; ")}")
        FAILED
      end

      def refuse_incomplete(path, failures)
        return if failures.empty?

        raise UsageError, "#{failures.join("\n")}\n#{path} was not written, because the settings of the lines above " \
                          "would be missing. Set the environment variables that these lines need " \
                          "(RAILS_ENV=production heddle init …), change the lines, or write the file without their " \
                          "settings with --force."
      end

      def write(path, text)
        FileUtils.mkdir_p(File.dirname(path))
        File.open(path, File::WRONLY | File::CREAT | (@force ? File::TRUNC : File::EXCL)) { |file| file.write(text) }
      rescue Errno::EEXIST
        raise UsageError, "#{path} exists. --force overwrites it."
      rescue SystemCallError => e
        raise UsageError, "#{path} can't be written: #{ErrorText.reason(e)}"
      end
    end
  end
end
