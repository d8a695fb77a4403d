# frozen_string_literal: true

# Keeps the instructions that Ruby has compiled, so that the next process that loads the same file need not parse it:
# half of the processor time of a server's start. bin/test hands this file to every process by RUBYOPT, but in the
# nightly plan, where Ruby compiles each file as it does for users.
module CodeCache
  TEMPORARY = File.expand_path("../../tmp", __dir__).freeze
  # Instructions are those of one version and platform.
  FOLDER = File.join(TEMPORARY, "code", "#{RUBY_VERSION}-#{RUBY_REVISION}-#{RUBY_PLATFORM}").freeze
  # Tests write files in here and load them once.
  PASSING = ["/tmp/", "#{TEMPORARY}/".freeze, *ENV.fetch("TMPDIR", nil)].freeze
  # Bytes of a file's name, which may have 255, without the number of the process that writes it.
  LONGEST = 240

  # Ruby calls this before it compiles a file that is required or loaded.
  # @param path [String]
  # @return [RubyVM::InstructionSequence, nil] nil: Ruby compiles it
  def load_iseq(path)
    # Warnings come from compiling. In a loop's fiber reading would be a switch that Ruby does not make.
    return if $VERBOSE || Fiber.current_scheduler

    kept = CodeCache.place(path) or return
    return load_from_binary(File.binread(kept)) if File.exist?(kept)

    compile_file(path).tap { |code| CodeCache.keep(code, kept) }
  rescue SystemCallError, SyntaxError
    nil
  end

  # @return [String, nil] where a file's instructions are; of a changed file they are elsewhere
  def self.place(path)
    return if !path.start_with?("/") || path.start_with?(*PASSING)

    status = File.stat(path)
    name = "#{path.tr("/", "%")} #{status.size} #{status.mtime.to_i} #{status.mtime.nsec}"
    File.join(FOLDER, name) if name.bytesize <= LONGEST
  end

  # Elsewhere first: other processes read it.
  def self.keep(code, kept)
    fresh = "#{kept} #{Process.pid}"
    File.binwrite(fresh, code.to_binary)
    File.rename(fresh, kept)
  end
end

# Without FileUtils: RubyGems, which is not loaded yet, might have a newer one.
[CodeCache::TEMPORARY, File.dirname(CodeCache::FOLDER), CodeCache::FOLDER].each do |folder|
  Dir.mkdir(folder) unless File.directory?(folder)
rescue Errno::EEXIST
  nil # another process was first
end
RubyVM::InstructionSequence.singleton_class.prepend(CodeCache)
