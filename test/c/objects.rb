# frozen_string_literal: true

require "digest"
require "fileutils"

# Compiles each C file once for all programs that use it with the same flags.
class Objects
  # @param folder [String] where the object files are
  def initialize(folder)
    @folder = folder
    @locks = Hash.new { |locks, object| locks[object] = Mutex.new }
    @lock = Mutex.new
  end

  # @param source [String]
  # @param compile [Array<String>] the compiler and its flags
  # @return [String, nil] the object file, newer than all that it is made of
  def object(source, compile)
    name = Digest::SHA256.hexdigest([source, *compile].join("\0"))[0, 16]
    object = File.join(@folder, "#{File.basename(source, ".c")}-#{name}.o")
    @lock.synchronize { @locks[object] }.synchronize { current?(object) || build(source, object, compile) } && object
  end

  # Makes a program that is older than one of its objects anew. Elsewhere first: another run may be using the program.
  # @param program [String]
  # @param objects [Array<String>]
  # @yieldparam fresh [String] the path to link to
  # @yieldreturn [Boolean, nil] whether that has succeeded
  # @return [Boolean]
  def link(program, objects)
    newest = objects.map { |object| File.mtime(object) }.max
    return true if File.exist?(program) && File.mtime(program) > newest

    fresh = "#{program}.#{Process.pid}"
    yield(fresh) ? File.rename(fresh, program).zero? : false
  end

  private

  # The compiler has noted which files it has read.
  def current?(object)
    built = File.mtime(object)
    File.read("#{object}.d").gsub("\\\n", " ").split.drop(1).all? { |file| File.mtime(file) < built }
  rescue Errno::ENOENT
    false
  end

  # Elsewhere first: another run may be reading the object.
  def build(source, object, compile)
    FileUtils.mkdir_p(@folder)
    fresh = "#{object}.#{Process.pid}"
    system(*compile, "-MD", "-MF", "#{fresh}.d", "-c", source, "-o", fresh) or return false
    File.rename("#{fresh}.d", "#{object}.d")
    File.rename(fresh, object)
  end
end
