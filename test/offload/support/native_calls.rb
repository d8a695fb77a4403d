# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# Compiles the test extension for the Ruby that runs, once a change.
module NativeCallsLibrary
  SOURCE = File.expand_path("native_calls.c", __dir__)
  ROOT = File.expand_path("../../..", __dir__)

  class << self
    # @return [String] the path of the library
    def path
      @path ||= build
    end

    private

    def build
      config = RbConfig::CONFIG
      folder = File.join(ROOT, "tmp/test-offload", "#{config["ruby_version"]}-#{config["arch"]}")
      library = File.join(folder, "native_calls.#{config["DLEXT"]}")
      return library if File.exist?(library) && File.mtime(library) > File.mtime(SOURCE)

      FileUtils.mkdir_p(folder)
      fresh = File.join(folder, "native_calls.#{Process.pid}.#{config["DLEXT"]}") # another run may be using it
      compile(config, fresh)
      File.rename(fresh, library)
      library
    end

    def compile(config, output)
      flags = RbConfig.expand("#{config["CFLAGS"]} #{config["CCDLFLAGS"]} #{config["DLDFLAGS"]}").split
      flags -= %w[-Werror]
      command = [*config["CC"].split, *flags, "-D_GNU_SOURCE", "-shared", "-fPIC", "-I#{config["rubyhdrdir"]}",
                 "-I#{config["rubyarchhdrdir"]}", "-o", output, SOURCE]
      text, status = Open3.capture2e(*command)
      raise "the test extension can't be built:\n#{text}" unless status.success?
    end
  end
end
