# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# An extension that tests need: compiled for the Ruby that runs, once a change of its sources.
class NativeLibrary
  ROOT = File.expand_path("../..", __dir__)
  EXTENSION = File.join(ROOT, "ext/heddle")

  # @param source [String] the path of its C file, which may name sources of Heddle's extension: `/* sources: … */`
  def initialize(source)
    @source = source
  end

  # @return [String] the path of the library
  def path
    @path ||= up_to_date? ? library : build
  end

  private

  def config = RbConfig::CONFIG

  def name = File.basename(@source, ".c")

  def folder = File.join(ROOT, "tmp/test-extensions", "#{config["ruby_version"]}-#{config["arch"]}")

  def library = File.join(folder, "#{name}.#{config["DLEXT"]}")

  def up_to_date?
    used = further.empty? ? [] : Dir[File.join(EXTENSION, "**/*.h")]
    File.exist?(library) && [@source, *further, *used].all? { |file| File.mtime(library) > File.mtime(file) }
  end

  def further
    @further ||= File.read(@source)[%r{/\* sources: (.*?)\*/}m, 1].to_s.scan(%r{[\w./]+\.c})
                     .map { |name| File.join(EXTENSION, name) }
  end

  def build
    FileUtils.mkdir_p(folder)
    fresh = File.join(folder, "#{name}.#{Process.pid}.#{config["DLEXT"]}") # another run may be using it
    compile(fresh)
    File.rename(fresh, library)
    library
  end

  def compile(output)
    flags = RbConfig.expand("#{config["CFLAGS"]} #{config["CCDLFLAGS"]} #{config["DLDFLAGS"]}").split - %w[-Werror]
    command = [*config["CC"].split, *flags, "-D_GNU_SOURCE", "-shared", "-fPIC", "-I#{config["rubyhdrdir"]}",
               "-I#{config["rubyarchhdrdir"]}", "-o", output, @source]
    command += ["-I#{EXTENSION}", "-fvisibility=hidden", *further] if further.any?
    text, status = Open3.capture2e(*command)
    raise "the test extension #{name} can't be built:\n#{text}" unless status.success?
  end
end
