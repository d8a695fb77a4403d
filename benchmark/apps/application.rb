# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"
require "yaml"
require_relative "server"

module Bench
  module Apps
    # A work tree, and how its application is started. recipes.yml knows what is particular about each.
    class Application
      RECIPES = YAML.load_file(File.expand_path("recipes.yml", __dir__), aliases: true)
      ROOT = File.expand_path("../..", __dir__)
      # What belongs to the benchmark and not to the application.
      OURS = %w[BUNDLE_GEMFILE BUNDLE_PATH GEM_HOME GEM_PATH RUBYLIB RUBYOPT].to_h { |name| [name, nil] }.freeze

      # @return [String]
      attr_reader :name, :ruby

      # @param folder [String]
      # @param ruby [String] path of the Ruby that runs it
      # @param workers [Integer]
      def initialize(folder, ruby:, workers:)
        @folder = File.expand_path(folder)
        abort "#{folder} is not a folder" unless File.directory?(@folder)

        @name, recipe = RECIPES.find { |_, one| one["file"] && File.exist?(File.join(@folder, one["file"])) }
        @name ||= File.basename(@folder)
        @recipe = RECIPES.fetch("default").merge(recipe || {})
        @ruby = ruby
        @workers = workers
      end

      # @return [Hash{String => Server}] the application's own, and Heddle
      def servers
        own = Server.new(@recipe["server"], @folder, command(@recipe["command"]), environment, @recipe["host"])
        heddle = Server.new("Heddle", @folder, heddle_command, environment.merge(with_heddle), @recipe["host"])
        [own, heddle].to_h { |server| [server.name, server] }
      end

      # @return [Array<String>] where the crawl begins
      def start_paths = @recipe["paths"] || [@recipe["start"]]

      # @return [Boolean] whether these are all
      def listed? = @recipe.key?("paths")

      # @return [String] the commit of the work tree, with its date
      def version
        text = IO.popen(["git", "-C", @folder, "log", "-1", "--format=%h of %cs"], err: File::NULL, &:read).strip
        text.empty? ? "no commit" : text
      end

      private

      def environment
        values = @recipe["environment"].transform_values { |text| fill(text.to_s) }
        OURS.merge(values, "PATH" => "#{File.dirname(@ruby)}:#{ENV.fetch("PATH")}")
      end

      # {port} stays: each server has its own.
      def fill(text) = text.gsub("{workers}", @workers.to_s).gsub("{folder}", @folder).gsub("{ours}", __dir__)

      def command(words) = [@ruby, "-S", "bundle", "exec", *words.map { |word| fill(word) }]

      def heddle_command
        command([File.join(ROOT, "exe/heddle"), "serve", *@recipe["rackup"], "-w", @workers.to_s,
                 "-b", "tcp://127.0.0.1:{port}", "--no-access-log"])
      end

      # The application's own Gemfile with one gem more, outside of its work tree. Its lock stays as it is.
      def with_heddle
        folder = Dir.mktmpdir("heddle-apps")
        at_exit { FileUtils.remove_entry(folder) }
        %w[.ruby-version Gemfile.lock].each do |name|
          path = File.join(@folder, name)
          FileUtils.cp(path, folder) if File.exist?(path)
        end
        gemfile = File.join(folder, "Gemfile")
        File.write(gemfile, <<~RUBY)
          eval_gemfile #{File.join(@folder, "Gemfile").inspect}
          gem "heddle", path: #{ROOT.inspect}
        RUBY
        settings = environment.merge("BUNDLE_GEMFILE" => gemfile, **bundle_settings)
        list = [@ruby, "-S", "bundle", "lock"]
        output = IO.popen(settings, list, err: %i[child out], chdir: @folder, &:read)
        abort "#{@name}: no bundle with Heddle:\n#{output}" unless $CHILD_STATUS.success?
        { "BUNDLE_GEMFILE" => gemfile, **bundle_settings }
      end

      # Where the application's gems are: its own .bundle/config is not read with another Gemfile.
      def bundle_settings
        { "BUNDLE_APP_CONFIG" => File.join(@folder, ".bundle"), "BUNDLE_FROZEN" => "false" }
      end
    end
  end
end
