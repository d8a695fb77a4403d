# frozen_string_literal: true

require "bundler"
require "fileutils"
require "open3"
require "rbconfig"
require_relative "check"
require_relative "served"

module Switch
  # An application in a folder of its own, with the gems that bin/setup has installed, served by one of two servers. A
  # subclass makes it (`write`), and names the commands that serve it.
  class Application
    ROOT = File.expand_path("../../..", __dir__)
    private_constant :ROOT

    # @return [String] where it is
    attr_reader :folder
    # @return [String] "puma" or "heddle"
    attr_reader :server

    # @param folder [String] is overwritten
    def initialize(folder)
      @folder = folder
      @logs = "#{folder}.logs"
      @served = {}
    end

    # @return [void]
    def make
      FileUtils.rm_rf([@folder, @logs])
      FileUtils.mkdir_p([@folder, @logs])
      write_commands
      write
    end

    # @param server [String] "puma", or "heddle", to which it is switched by README's steps
    # @return [void]
    def use(server)
      @server = server
      @failed = {}
      return if server == "puma"

      replace("Gemfile", /^gem "puma".*$/, %(gem "heddle", path: "#{ROOT}"))
      run("bundle", "install", "--local", "--quiet")
      switch
    end

    # @param environment [Symbol]
    # @return [Served] the application, served in this environment; what was served in another one is stopped
    def served(environment)
      raise @failed[environment] if @failed[environment]

      @served[environment] ||= begin
        stop
        serve(environment)
      end
    rescue StandardError => e
      @failed[environment] = e
      raise
    end

    # @param command [Array<String>] that of the environment by default
    # @param more [Hash] added to the process's environment
    # @param ready [String] the path that is asked until it answers
    # @return [Served] one that the caller stops
    def serve(environment, command: nil, more: {}, port: Served.free_port, ready: "/up")
      command ||= serving(environment, port)
      log = File.join(@logs, "#{@server}-#{environment}-#{port}.log")
      Served.new(command, port:, log:, ready:, folder: @folder, **stop_timeout,
                          environment: self.environment.merge(variables(environment), { "PORT" => port.to_s }, more))
    end

    # @return [void]
    def stop
      @served.each_value(&:stop)
      @served.clear
    end

    # Bundler finds the gems of bin/setup, and Ruby's own Bundler is used, whatever wrote the lock file.
    # Under bin/test what Ruby and Bootsnap have compiled before is not compiled again.
    # @return [Hash{String => String, nil}]
    def environment
      { "PATH" => [File.join(@logs, "bin"), ENV.fetch("PATH")].join(File::PATH_SEPARATOR),
        "BUNDLE_PATH" => File.join(ROOT, "vendor/bundle"), "BUNDLE_APP_CONFIG" => File.join(@logs, "bundle"),
        "BUNDLER_VERSION" => Bundler::VERSION, "BUNDLE_GEMFILE" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil,
        "RUBYLIB" => nil, "LANG" => "C.UTF-8",
        "BOOTSNAP_CACHE_DIR" => (File.join(ROOT, "tmp/bootsnap") if ENV["RUBYOPT"]) }
    end

    # @return [String] what the command has printed
    def run(*command, environment: {}, folder: @folder)
      output, status = Open3.capture2e(self.environment.merge(environment), *command, chdir: folder, stdin_data: "")
      raise "#{command.join(" ")}:\n#{output.lines.last(20).join}" unless status.success?

      output
    end

    # @return [void]
    def replace(file, pattern, replacement)
      path = File.join(@folder, file)
      content = File.read(path)
      raise "#{path} has nothing like #{pattern.inspect}" unless content.index(pattern)

      File.write(path, content.sub(pattern) { replacement })
    end

    private

    # Puma 8.0.2 sometimes hangs in IO#close: see Probe#ended.
    def stop_timeout = @server == "puma" ? { stop_timeout: 40 } : {}

    # Beyond Gemfile and lock file, what a switch takes.
    def switch = nil

    # @return [Hash{String => String}] the environment variables of an environment
    def variables(_environment) = {}

    # `#!/usr/bin/env ruby` is this Ruby.
    def write_commands
      bin = File.join(@logs, "bin")
      FileUtils.mkdir_p(bin)
      File.symlink(RbConfig.ruby, File.join(bin, "ruby"))
      script = %(#!/bin/sh\nexec ruby -e 'load Gem.activate_bin_path("bundler", "bundle", ">= 0")' -- "$@"\n)
      File.write(File.join(bin, "bundle"), script)
      File.chmod(0o755, File.join(bin, "bundle"))
    end

    def copy_files(from) = FileUtils.cp_r("#{from}/.", @folder)
  end
end
