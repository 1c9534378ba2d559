// Package demo is an agent that needs nothing: a scripted one, for a first run on
// a fresh machine and for tests of amux itself, and the adapter that knows it.
//
// The agent is the plugin's own executable, started with AgentArg. It speaks JSON
// lines of its own both ways on stdin and stdout:
//
//	to it    prompt{text} reply{id,allow,input,reason} answer{id,text} interrupt model{model}
//	from it  hello{session,model,version} turn{index} think{text} think_end text{text} message_end
//	         tool{id,name,input,file…} tool_done{id,output} tool_failed{id,error}
//	         permission{id,call,name,input,detail} question{id,text} withdrawn{id}
//	         usage{…} model{model} turn_end{status,code,error}
//
// It writes only in a scratch folder that it makes for itself under TMPDIR and
// removes when it ends.
package demo
