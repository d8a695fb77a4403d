# frozen_string_literal: true

# Locks of files, and descriptors that are closed while somebody waits for them.

require "tempfile"

# Only a thread, or an offloaded call, waits for a lock without blocking the one that closes the file.
unless Trials::Inside::WAY == "loop"
  Trials::Program.example("a file that is closed while a fiber waits for its lock") do |out|
    file = Tempfile.create("heddle-trial")
    File.open(file.path) do |holder|
      holder.flock(File::LOCK_EX)
      waiting = lambda do
        file.flock(File::LOCK_EX)
      rescue IOError => e
        e.message
      end
      closing = lambda do
        sleep 0.05
        file.close
      end
      out.puts Trials::Program.together(waiting, closing).first
    end
    File.unlink(file.path)
  end
end

Trials::Program.example("what reads without waiting does not wait") do |out|
  reader, writer = IO.pipe
  out.puts reader.read_nonblock(1, exception: false).inspect
  writer.write("text")
  out.puts reader.read_nonblock(10).inspect
  begin
    reader.read_nonblock(1)
  rescue IO::WaitReadable => e
    out.puts e.class
  end
end

Trials::Program.example("copies from one pipe to another") do |out|
  from, source = IO.pipe
  target, to = IO.pipe
  feeding = lambda do
    3.times do |number|
      sleep 0.002
      source.write("part #{number}\n")
    end
    source.close
  end
  copying = -> { IO.copy_stream(from, to).tap { to.close } }
  out.puts Trials::Program.together(feeding, copying, -> { target.read }).drop(1).inspect
end
