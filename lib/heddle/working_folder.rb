# frozen_string_literal: true

module Heddle
  # The folder in which the server was started, by the name that the shell gave it (PWD). A symbolic link in that
  # name, such as the `current` of a deployment, is followed anew at each reload and restart.
  #
  # @api private
  class WorkingFolder
    class << self
      # Prefers PWD, because the kernel's name of the folder has no links.
      # @param environment [Hash{String => String}]
      # @return [String] the name of the current folder
      def current(environment = ENV)
        named = environment["PWD"]
        named = Dir.pwd unless named && File.absolute_path?(named) && File.identical?(named, ".")
        link_of_release(named) || named
      end

      # @return [String] the folder in which the process was started, and a slash: paths of code begin with it
      def started = @started || note

      # Remembers the current folder as {started}, because the application may change to another one later.
      # @return [String]
      def note
        @started = "#{Dir.pwd}/"
      rescue Errno::ENOENT # a deployment has deleted it
        @started.to_s
      end

      private

      # Capistrano's link: `/srv/shop/current` leads to `/srv/shop/releases/20261129`. systemd, and shells that it
      # starts, name the folder without the link.
      def link_of_release(folder)
        return unless File.basename(File.dirname(folder)) == "releases"

        link = File.expand_path("../../current", folder)
        link if File.symlink?(link) && File.identical?(link, folder)
      end
    end

    # @return [String]
    attr_reader :path

    # @param environment [Hash{String => String}]
    def initialize(environment = ENV)
      @environment = environment
      @path = WorkingFolder.current(environment)
      @first = Dir.pwd
      @former = nil
    end

    # Changes to the folder that has this name now.
    # @return [void]
    # @raise [SystemCallError] when there is none
    def enter
      former = working_folder
      Dir.chdir(path)
      @former = former
    end

    # Changes back, because the new code could not be loaded.
    # @return [void]
    def roll_back
      Dir.chdir(@former) if @former
    rescue SystemCallError
      nil # The folder of the running code has been deleted.
    ensure
      commit
    end

    # @return [void]
    def commit = @former = nil

    # Bundler has put the Gemfile's path into the environment, without links: `bundle exec` would choose the gems of
    # the first release forever.
    # @return [Hash{String => String}] for a new process in this folder
    def variables
      gemfile = @environment["BUNDLE_GEMFILE"]
      return {} unless gemfile&.start_with?("#{@first}/")

      renewed = File.join(path, gemfile.delete_prefix("#{@first}/"))
      File.exist?(renewed) ? { "BUNDLE_GEMFILE" => renewed } : {}
    end

    private

    def working_folder
      Dir.pwd
    rescue SystemCallError
      nil
    end
  end
end
