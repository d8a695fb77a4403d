# frozen_string_literal: true

# A control group with a limit of memory, beside the one of this process. Only root can make one, and not in every
# container.
class MemoryGroup
  # By the version of control groups: where they are, and the file of the limit.
  KINDS = { "sys/fs/cgroup/memory" => "memory.limit_in_bytes", "sys/fs/cgroup" => "memory.max" }.freeze

  # @return [Boolean]
  def self.possible? = !within(1 << 30) { |group| group }.nil?

  # @param bytes [Integer]
  # @yieldparam group [MemoryGroup]
  # @return [Object, nil] what the block returns; nil: there can be no such group
  def self.within(bytes)
    group = KINDS.filter_map { |folder, limit| make(folder, limit, bytes) }.first or return
    begin
      yield group
    ensure
      group.remove
    end
  end

  def self.make(root, limit, bytes)
    folder = "/#{root}/heddle-test-#{Process.pid}-#{rand(1 << 32)}"
    Dir.mkdir(folder)
    File.write("#{folder}/#{limit}", bytes.to_s)
    new(folder)
  rescue SystemCallError
    Dir.rmdir(folder) if File.directory?(folder)
    nil
  end
  private_class_method :make

  def initialize(folder)
    @folder = folder
  end

  # @param command [Array<String>]
  # @return [Array<String>] the same command, in the group
  def command(command) = ["sh", "-c", "echo $$ > #{@folder}/cgroup.procs && exec \"$@\"", "sh", *command]

  # The kernel may still be about to take its last process out.
  # @return [void]
  def remove
    attempts ||= 0
    Dir.rmdir(@folder)
  rescue Errno::EBUSY
    raise if (attempts += 1) > 500

    sleep 0.01
    retry
  end
end
