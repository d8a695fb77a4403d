# frozen_string_literal: true

# Step 5: a chat. Each client has a channel of messages for it, and two tasks: one reads what the client says, one
# writes what the others say. They belong to one scope, so when one ends, the other does, too.
#
#     ruby docs/tutorial/05_chat.rb 7000                and several times:  nc localhost 7000

require "heddle"
require "monitor"
require "socket"

# The visitors of a room. The lock makes it right with preemption, too: another task may then run between any two lines.
class Room
  def initialize
    @members = {}
    @lock = Monitor.new
  end

  def join(name, mailbox)
    @lock.synchronize do
      @members[name] = mailbox
      tell("* #{name} has come, #{@members.size} here")
    end
  end

  def leave(name)
    @lock.synchronize { @members.delete(name) }
    tell("* #{name} has gone")
  end

  def tell(message)
    @lock.synchronize { @members.each_value { |mailbox| mailbox << message } }
  end
end

def talk(client, name, room)
  while (line = client.gets)
    room.tell("#{name}: #{line.chomp}")
  end
end

def serve(client, room)
  client.puts("your name?")
  name = client.gets&.chomp or return
  mailbox = Heddle::Channel.new
  Heddle.scope do
    Heddle.async(background: true) { mailbox.each { |message| client.puts(message) } }
    room.join(name, mailbox)
    talk(client, name, room)
  ensure
    room.leave(name)
  end
ensure
  client.close
end

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0, 7000)))
puts "listening on 127.0.0.1:#{server.local_address.ip_port}"
$stdout.flush

begin
  Heddle.run do
    room = Room.new
    Heddle.supervise do |clients|
      loop do
        client = server.accept
        clients.async { serve(client, room) }
      end
    end
  end
rescue Interrupt
  puts "bye"
end
