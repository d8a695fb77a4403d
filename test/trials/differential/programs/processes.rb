# frozen_string_literal: true

# Children that are forked, and how they end.

require "English"

Trials::Program.example("a forked child ends with its own status") do |out|
  ways = { "exit" => -> { exit 3 }, "exit!" => -> { exit! 4 }, "end of block" => -> {}, "abort" => -> { abort },
           "exec" => -> { exec "true" } }
  ways.each do |name, block|
    pid = fork do
      $stderr.reopen(File::NULL)
      block.call
    end
    Process.wait(pid)
    out.puts "#{name}: #{$CHILD_STATUS.exitstatus.inspect}"
  end
end

Trials::Program.example("a sleeping child ends by TERM") do |out|
  reader, writer = IO.pipe
  pid = fork do
    writer.write("x")
    sleep
  end
  reader.read(1)
  Process.kill(:TERM, pid)
  Process.wait(pid)
  out.puts $CHILD_STATUS.termsig.inspect
end

Trials::Program.example("pipes to programs") do |out|
  out.puts Trials::Program.together(*(1..4).map { |n| -> { IO.popen(["echo", n.to_s], &:read) } }).inspect
end
