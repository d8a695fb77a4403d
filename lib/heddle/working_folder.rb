# frozen_string_literal: true

module Heddle
  # The folder in which the server was started, by its name in the shell (PWD). This name may contain a symbolic link,
  # such as `current` of a deployment. The link is followed again at each reload and restart.
  #
  # @api private
  class WorkingFolder
    class << self
      # Prefers PWD to Dir.pwd, because the kernel's name of the folder contains no links.
      # @param environment [Hash{String => String}]
      # @return [String] the name of the current folder
      def current(environment = ENV)
        named = environment["PWD"]
        named = Dir.pwd unless named && File.absolute_path?(named) && File.identical?(named, ".")
        link_of_release(named) || named
      end

      # @return [String] the folder in which the process was started, with a slash at the end, so that it is a prefix of
      #   the paths of code
      def started = @started || note

      # Stores the current folder as {started}, because the application may change the folder later.
      # @return [String]
      def note
        @started = "#{Dir.pwd}/"
      rescue Errno::ENOENT # a deployment has deleted it
        @started.to_s
      end

      private

      # Returns Capistrano's link: `/srv/shop/current` points to `/srv/shop/releases/20261129`. In a process
      # that systemd starts, and in its shells, PWD is the folder without the link.
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

    # Changes to the folder that {path} currently refers to.
    # @return [void]
    # @raise [SystemCallError] if the folder does not exist
    def enter
      former = working_folder
      Dir.chdir(path)
      @former = former
    end

    # Changes back to the former folder, because the new code could not be loaded.
    # @return [void]
    def roll_back
      Dir.chdir(@former) if @former
    rescue SystemCallError
      nil # The folder of the running code has been deleted.
    ensure
      commit
    end

    # Stays in the new folder: {#roll_back} does nothing from now on.
    # @return [void]
    def commit = @former = nil

    # Updates the path of the Gemfile. `bundle exec` has put the path without links into the environment; with it, every
    # restarted server would load the gems of the first release.
    # @return [Hash{String => String}] environment variables for a new process in this folder
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
