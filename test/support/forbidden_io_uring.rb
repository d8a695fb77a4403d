# frozen_string_literal: true

require "fileutils"
require "heddle/selector"
require "tmpdir"

# Runs programs for which the kernel refuses a call of io_uring, as a container's seccomp filter does.
module ForbiddenIOUring
  # Their numbers, the same on every processor.
  CALLS = { setup: 425, enter: 426 }.freeze
  NEEDS = "needs Linux, io_uring and a C compiler"

  SOURCE = <<~C
    #include <errno.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <stddef.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[1]), 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = 4, .filter = filter};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            return perror("seccomp"), 1;
        return execvp(argv[2], argv + 2), 1;
    }
  C
  private_constant :SOURCE

  # @param call [Integer] one of {CALLS}
  # @return [Array<String>, nil] what the command to run begins with; nil where {NEEDS} are not met
  def self.launcher(call = CALLS[:setup])
    return unless Heddle::Selector.built.include?(:io_uring) && system("cc", "--version", out: File::NULL)

    @program ||= compile
    [@program, call.to_s]
  end

  def self.compile
    folder = Dir.mktmpdir
    Minitest.after_run { FileUtils.remove_entry(folder) }
    File.write("#{folder}/forbid.c", SOURCE)
    raise "the filter's launcher must compile" unless system("cc", "-o", "#{folder}/forbid", "#{folder}/forbid.c")

    "#{folder}/forbid"
  end
  private_class_method :compile
end
