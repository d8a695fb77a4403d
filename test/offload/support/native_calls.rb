# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# Compiles the test extensions for the Ruby that runs, once a change.
module NativeCallsLibrary
  ROOT = File.expand_path("../../..", __dir__)

  class << self
    # @param name [String] which of the C files in this folder
    # @return [String] the path of the library
    def path(name = "native_calls")
      @paths ||= {}
      @paths[name] ||= build(name)
    end

    private

    def build(name)
      config = RbConfig::CONFIG
      source = File.expand_path("#{name}.c", __dir__)
      folder = File.join(ROOT, "tmp/test-offload", "#{config["ruby_version"]}-#{config["arch"]}")
      library = File.join(folder, "#{name}.#{config["DLEXT"]}")
      return library if File.exist?(library) && File.mtime(library) > File.mtime(source)

      FileUtils.mkdir_p(folder)
      fresh = File.join(folder, "#{name}.#{Process.pid}.#{config["DLEXT"]}") # another run may be using it
      compile(config, source, fresh)
      File.rename(fresh, library)
      library
    end

    def compile(config, source, output)
      flags = RbConfig.expand("#{config["CFLAGS"]} #{config["CCDLFLAGS"]} #{config["DLDFLAGS"]}").split
      flags -= %w[-Werror]
      command = [*config["CC"].split, *flags, "-D_GNU_SOURCE", "-shared", "-fPIC", "-I#{config["rubyhdrdir"]}",
                 "-I#{config["rubyarchhdrdir"]}", "-o", output, source]
      text, status = Open3.capture2e(*command)
      raise "the test extension can't be built:\n#{text}" unless status.success?
    end
  end
end
